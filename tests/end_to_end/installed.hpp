// attnbench as `cmake --install` leaves it.
#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "tests/support/process.hpp"

namespace attnbench::test {

/// An installation below a prefix. Throws std::runtime_error where it fails.
struct Installation {
  explicit Installation(const std::filesystem::path& prefix);
  std::string program() const { return prefix / "bin/attnbench"; }
  std::string package() const { return prefix / "lib/cmake/attnbench"; }  ///< for attnbench_DIR
  /// What a program of it sees: its own programs found first.
  std::map<std::string, std::string> environment() const;
  /// The same for builds of plugins, as quick as they can be: not optimised, and from the
  /// compiler's cache, which knows a plugin again in any folder below that of the build.
  std::map<std::string, std::string> building_environment() const;

  std::filesystem::path prefix;
};

/// The one in the build folder, which stays; it finds the checkout above it.
const Installation& installed();
/// One that is far from any checkout, as a user's; it goes when the program ends.
const Installation& installed_elsewhere();

}  // namespace attnbench::test
