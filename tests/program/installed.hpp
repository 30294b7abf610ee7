// attnbench as `cmake --install` leaves it, shared by the tests of this program.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tests/support/process.hpp"

namespace attnbench::test {

/// The prefix, made when it is first asked for; it goes when the program ends. Throws
/// std::runtime_error if the installation fails.
const std::filesystem::path& installed_prefix();
std::string installed_program();
std::string installed_package();  ///< what attnbench_DIR is to be

/// What a program of the installation sees: the prefix's programs found first, and a cache of its
/// own.
std::map<std::string, std::string> installed_environment();

}  // namespace attnbench::test
