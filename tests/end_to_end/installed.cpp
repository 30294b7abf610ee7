#include "tests/end_to_end/installed.hpp"

#include <cstdlib>
#include <stdexcept>

#include "tests/support/files.hpp"

namespace attnbench::test {

Installation::Installation(const std::filesystem::path& where) : prefix(where) {
  // One process at a time; what is there and unchanged is left as it is.
  const Finished finished =
      run(words("flock " + test::build_folder() + "/test_installation.lock cmake --install " +
                test::build_folder() + " --prefix " + prefix.string()));
  if (finished.exit_code != 0) throw std::runtime_error(finished.out + finished.err);
}

std::map<std::string, std::string> Installation::environment() const {
  const char* path = std::getenv("PATH");
  return {{"PATH", (prefix / "bin").string() + ":" + (path == nullptr ? "" : path)}};
}

std::map<std::string, std::string> Installation::building_environment() const {
  auto all = environment();
  all["CMAKE_BUILD_TYPE"] = "Plain";
  all["CXXFLAGS"] = "-O0 -DNDEBUG";
  if (run({"ccache", "--version"}).exit_code == 0) {
    all["CMAKE_CXX_COMPILER_LAUNCHER"] = all["CMAKE_CUDA_COMPILER_LAUNCHER"] = "ccache";
    all["CCACHE_BASEDIR"] = test::source_folder();
    all["CCACHE_NOHASHDIR"] = "1";
    all["CCACHE_SLOPPINESS"] = "time_macros,include_file_mtime,include_file_ctime";
  }
  return all;
}

const Installation& installed() {
  static const Installation once(test::build_folder() + "/test_installation");
  return once;
}

const Installation& installed_elsewhere() {
  static const TemporaryFolder folder;
  static const Installation once(folder.path());
  return once;
}

}  // namespace attnbench::test
