// What the tests of mechanisms in Python share: whether there is Python, the examples of the page,
// and a folder with files in Python and runs there.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/end_to_end/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

namespace attnbench::test {

/// Whether the worker can start Python; else the test is skipped aloud.
inline bool have_python() {
  if (std::filesystem::exists(test::build_folder() + "/lib/libattnbench-python.so")) {
    return true;
  }
  WARN("needs Python: the worker was built without python3-torch, libpython3-dev, pybind11-dev");
  return false;
}

/// The example of docs/python.md that begins with "# `file`".
inline std::string documented(const std::string& file) {
  const std::string page = read_file(test::source_folder() + "/docs/python.md");
  const std::string head = "```python\n# " + file + "\n";
  const std::size_t begin = page.find(head);
  REQUIRE(begin != std::string::npos);
  const std::size_t text = begin + std::string("```python\n").size();
  return page.substr(text, page.find("```", text) - text);
}

/// A folder with near.py and other files in Python, and runs in it.
class PythonBench {
 public:
  PythonBench() { write("near.py", documented("near.py")); }

  void write(const std::string& name, const std::string& text) { write_file(folder_ / name, text); }
  std::filesystem::path operator/(const std::string& name) const { return folder_ / name; }

  Finished run(const std::string& line, std::map<std::string, std::string> more = {}) const {
    more.insert({"VIRTUAL_ENV", ""});
    return call(line, more, folder_.path());
  }
  /// `attnbench run LINE --rounds 1`, whose folder is called run; it has to do well.
  std::map<std::string, Json> cells_of_run(
      const std::string& line, const std::map<std::string, std::string>& more = {}) const {
    const Finished ran =
        run("run " + line + " --rounds 1 --out run --no-ceilings --no-report", more);
    INFO(ran.out << ran.err);
    REQUIRE(ran.exit_code == 0);
    return cells_of(folder_ / "run");
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace attnbench::test
