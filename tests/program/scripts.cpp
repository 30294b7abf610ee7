// The mechanism in Python of docs/plugins.md, taken from the page as it stands there. Its class is
// scripted without Python: the methods are TorchScript either way.
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/program/runs.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/process.hpp"
#include "tests/support/stored_result.hpp"

using namespace attnbench::test;
using Catch::Matchers::Contains;
using Json = nlohmann::json;

namespace {

/// The methods of the page's class (docs/plugins.md), their indentation taken away.
std::string documented_methods() {
  const std::string page = read_file(test::source_folder() + "/docs/plugins.md");
  const std::size_t block = page.find("```python\n");
  const std::size_t begin = page.find("    def forward(", block);
  std::istringstream lines(page.substr(begin, page.find("\ntorch.jit", begin) - begin));
  std::string methods;
  for (std::string line; std::getline(lines, line);) {
    methods += (line.size() >= 4 ? line.substr(4) : "") + "\n";
  }
  return methods;
}

std::string save(const TemporaryFolder& folder, const std::string& name,
                 const std::string& methods) {
  write_file(folder / "methods", methods);
  const std::string file = folder / name;
  const Finished saved = run({program() + "-save-script", folder / "methods", file});
  INFO(saved.err);
  REQUIRE(saved.exit_code == 0);
  return file;
}

}  // namespace

TEST_CASE("the documented mechanism in Python is checked, measured and drawn",
          "[program][script]") {
  const TemporaryFolder folder;
  save(folder, "near.pt", documented_methods());
  const std::map<std::string, std::string> environment{{"XDG_CACHE_HOME", folder / "cache"}};
  const Finished checked = run({program(), "check", "torchscript:near.pt", "--no-growth", "--dtype",
                                "float32", "--out", "check.md"},
                               300, environment, folder.path());
  INFO(checked.out << checked.err);
  CHECK(checked.exit_code == 0);
  CHECK_THAT(checked.out, Contains("near composite") &&
                              Contains("all properties hold; near was compared with itself"));
  CHECK_THAT(read_file(folder / "check.md"), Contains("compared with itself in double"));

  write_file(folder / "suite.json",
             R"({"name": "python", "task": "kernel",
                 "set": {"heads": 2, "head_dim": 16, "length": [16, 33], "pattern": "causal",
                         "pass": "forward+backward"},
                 "mechanisms": {"ours": {"use": "torchscript:near.pt", "slope": [0.1, 0.5]},
                                "softmax": {}},
                 "measure": {"rounds": 2, "max_samples": 10, "max_seconds": 0.05}})");
  const Finished ran =
      run({program(), "run", folder / "suite.json", "--out", folder / "run", "--no-ceilings"}, 300,
          environment);
  INFO(ran.out << ran.err);
  REQUIRE(ran.exit_code == 0);
  const Json result = attnbench::test::stored_result(folder / "run/result.json");
  CHECK(result["attnbench"]["cells"].size() == 6);
  for (const Json& cell : result["attnbench"]["cells"]) {
    INFO(cell.dump(1));
    CHECK(was_measured(cell));
    CHECK(cell["check"]["verdict"] == "ok");
    CHECK(cell["memory"]["peak_bytes"].get<double>() > 0);
  }
  CHECK_THAT(read_file(folder / "run/index.html"), Contains("ours"));
}

TEST_CASE("a module in Python that is wrong is caught, and costs its cell alone",
          "[program][script]") {
  const TemporaryFolder folder;
  // It looks ahead whatever it is told.
  save(folder, "ahead.pt",
       "def forward(self, query, key, value, causal: bool):\n"
       "    return torch.matmul(torch.softmax(torch.matmul(query, key.transpose(-2, -1)), -1), "
       "value)\n");
  const Finished checked = run({program(), "check", "torchscript:ahead.pt", "--no-growth",
                                "--pattern", "causal", "--dtype", "float64"},
                               300, {}, folder.path());
  CHECK(checked.exit_code == 1);
  CHECK_THAT(checked.out, Contains("causality"));

  // And against the module that says what it is meant to be, its cells are wrong.
  save(folder, "ahead.reference.pt", documented_methods());
  const Finished ran = run({program(), "run", "torchscript:ahead.pt", "softmax", "--length", "16",
                            "--rounds", "1", "--no-ceilings", "--no-report", "--out", "run"},
                           300, {}, folder.path());
  INFO(ran.out << ran.err);
  CHECK(ran.exit_code == 1);
  const Json result = attnbench::test::stored_result(folder / "run/result.json");
  for (const Json& cell : result["attnbench"]["cells"]) {
    CHECK((cell["label"] == "ahead" ? cell["status"] == "wrong" : was_measured(cell)));
  }
}

TEST_CASE("a module that is named and cannot be taken is refused", "[program][script]") {
  const TemporaryFolder folder;
  write_file(folder / "Two-Words.pt", "");
  write_file(folder / "text.pt", "not a module");
  const std::vector<std::pair<std::string, std::string>> words{
      {"torchscript:nowhere.pt", "there is no file nowhere.pt"},
      {"torchscript:Two-Words.pt", "the file's name becomes the mechanism's"},
      {"torchscript:text.txt", "whose name ends in .pt"},
      {"torchscript:text.pt", "it is no TorchScript module that this LibTorch can read"}};
  for (const auto& [word, complaint] : words) {
    const Finished finished =
        run({program(), "run", word, "--length", "8", "--out", "run"}, 120, {}, folder.path());
    INFO(word << "\n" << finished.err);
    CHECK(finished.exit_code == 2);
    CHECK_THAT(finished.err, Contains(complaint));
  }
}
