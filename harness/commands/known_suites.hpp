// The suites that come with the program.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::commands {

struct KnownSuite {
  std::filesystem::path file;
  std::string title;   ///< empty where the suite says none
  std::string source;  ///< of the protocol
  std::vector<std::string> profiles;
};

/// Suites of the folder `suites` here, else of the nearest one above the program, sorted by name.
/// A file that is no suite is left out: `validate` says why.
std::vector<KnownSuite> known_suites();

/// The file of that name; where there is none and the name is NAME.json or suites/NAME.json, the
/// suite that comes with the program. `name` itself if that is not there either.
std::filesystem::path find_suite(const std::string& name);

}  // namespace attnbench::commands
