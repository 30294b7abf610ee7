// Reader of published Pathfinder images: PNGs and their metadata, in a folder or inside
// lra_release.gz, of which no byte is unpacked to disk.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tasks/data/rows.hpp"

namespace attnbench::tasks::data::lra {

struct PathfinderFileRules {
  int side = 32;
  std::string difficulty = "hard";  ///< chooses curv_contour_length_14 where there are several
  std::uint64_t seed = 0;           ///< of the split: 80 % train, 10 % validation, 10 % test
};

/// Reads imgs/K/sample_I.png and metadata/K.npy under curv_baseline, curv_contour_length_9 or _14.
/// A row's place follows from K, I and the seed, not from the order of the files; everybody else's
/// split follows from the order in which a system listed them.
///
/// Throws UsageError "FROM, member NAME: …": no such files; a PNG without a line of metadata, or a
/// line without a PNG; what read_grey_png refuses; a label other than 0 and 1. The empty PNG that
/// the published easy set of 32 pixels is known to hold (curv_baseline/imgs/0/sample_172.png) is
/// skipped, and notes.skipped names it.
std::unique_ptr<RowSource> read_pathfinder(const std::filesystem::path& from,
                                           const PathfinderFileRules& rules = {},
                                           const ProgressCall& progress = {});

// ---- their metadata: one line for each image, as text or as a NumPy array of strings

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

}  // namespace attnbench::tasks::data::lra
