// The parts of READMEs that are written from the index: the table of suites, that of the papers'
// figures, and the gallery.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/gallery/index.hpp"

namespace attnbench::gallery {

/// Tables of all suites and of all figures, for suites/README.md.
std::string suites_block(const Index& index);
/// The pictures that are there, for the README beside the folder of suites. `root` is its folder.
std::string gallery_block(const Index& index, const std::filesystem::path& root);

/// `text` with `block` between the lines "<!-- figures: begin -->" and
/// "<!-- figures: end -->". Throws UsageFailure naming `file` where the two lines are not there
/// once each, in this order.
std::string with_block(const std::string& text, const std::string& block,
                       const std::filesystem::path& file);

/// A README and what it should say.
struct Readme {
  std::filesystem::path file;
  std::string present;
  std::string wanted;
};
/// suites/README.md and the README above the folder of suites, where they are. Throws as
/// with_block.
std::vector<Readme> readmes(const Index& index);

}  // namespace attnbench::gallery
