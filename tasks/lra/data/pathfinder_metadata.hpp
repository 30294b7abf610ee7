// The metadata of published Pathfinder images: one line for each image, as text or as a NumPy array
// of strings.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace attnbench::tasks::lra {

/// One image's line of metadata.
struct PathfinderLine {
  std::string image;  ///< "imgs/0/sample_172.png"
  int label;
};

/// The lines of a metadata file: text, whatever its name says, or a NumPy array of strings, as the
/// original generator writes. Throws UsageError with the line and what was expected.
std::vector<PathfinderLine> parse_pathfinder_metadata(std::string_view content);

/// A whole number in decimal digits alone; nothing for other text.
std::optional<std::uint32_t> number_of(std::string_view text);

}  // namespace attnbench::tasks::lra
