// The suites that come with the program: the folder that they are in, and their names.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace attnbench::suite {

struct KnownSuite {
  std::filesystem::path file;
  std::string title;   ///< may be empty
  std::string source;  ///< of the protocol
  std::vector<std::string> profiles;
};

/// The folder `suites` here, else the nearest one above the program; empty where there is none.
std::filesystem::path suites_folder();

/// Suites of suites_folder(), sorted by name, without files that are not suites.
std::vector<KnownSuite> known_suites();

/// The suite that comes with the program as the file `name`; empty where there is none.
std::filesystem::path own_suite(const std::filesystem::path& name);

/// The file `name`; where there is none, the suite of that name that comes with the program; `name`
/// itself where there is neither. NAME, NAME.json and suites/NAME.json name such a suite.
std::filesystem::path find_suite(const std::string& name);

}  // namespace attnbench::suite
