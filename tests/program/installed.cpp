#include "tests/program/installed.hpp"

#include <cstdlib>
#include <stdexcept>

#include "tests/support/files.hpp"

namespace attnbench::test {

const std::filesystem::path& installed_prefix() {
  static const TemporaryFolder prefix;
  static bool made = false;
  if (!made) {
    const Finished finished =
        run({"cmake", "--install", test::build_folder(), "--prefix", prefix.path().string()}, 300);
    if (finished.exit_code != 0) throw std::runtime_error(finished.out + finished.err);
    made = true;
  }
  return prefix.path();
}

std::string installed_program() { return installed_prefix() / "bin/attnbench"; }

std::string installed_package() { return installed_prefix() / "lib/cmake/attnbench"; }

std::map<std::string, std::string> installed_environment() {
  const char* path = std::getenv("PATH");
  return {{"PATH", (installed_prefix() / "bin").string() + ":" + (path == nullptr ? "" : path)},
          {"XDG_CACHE_HOME", (installed_prefix() / "cache").string()}};
}

}  // namespace attnbench::test
