// The command line as it was typed, and as it is typed to do one thing of it again.
#pragma once

#include <set>
#include <string>
#include <vector>

namespace attnbench::commands {

/// Of this process, each word quoted where a shell needs it.
std::string typed_command();

/// The same without what chooses cells, folders or looks, and without other suites than `suite`:
/// what a cell's id is appended to as --only.
std::string reproducing_command(const std::string& suite);
/// The same from the words of a command line.
std::string reproducing_command(const std::vector<std::string>& words, const std::string& suite);

/// Holds the words given to `flag` against the statuses there are; throws UsageFailure.
std::set<std::string> statuses_from(const std::string& flag, const std::vector<std::string>& words);

}  // namespace attnbench::commands
