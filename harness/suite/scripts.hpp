// "torchscript:mine.pt": a mechanism written in Python, named where others are. It is taken as a
// plugin, which gives the mechanism `mine`.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "harness/suite/document.hpp"

namespace attnbench::suite {

/// `word` itself or, of "torchscript:PATH", the mechanism's name, PATH (relative to `folder`)
/// having gone to `plugins`. Throws UsageFailure for a file that is not there or cannot give a
/// name.
std::string take_script(const std::string& word, const std::filesystem::path& folder,
                        std::vector<std::string>& plugins);

/// The same for every mechanism of a suite and of its profiles, paths being relative to the suite's
/// file. A label stays as it was written.
void take_scripts(Document& document, std::vector<std::string>& plugins);

}  // namespace attnbench::suite
