#include "harness/suite/suite_entries.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

TEST_CASE("python:FILE.py:NAME becomes a plugin and the name of its mechanism", "[suite]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "mine.py", "");
  const std::string suite = folder / "suite.json";
  test::write_file(suite, R"({"name": "s", "task": "kernel",
    "mechanisms": {"ours": {"use": "python:mine.py:Mine"}, "python:mine.py:Other": {},
                   "softmax": {}},
    "profiles": {"quick": {"mechanisms": {"again": {"use": "python:mine.py:Mine"}}}}})");
  suite::Document document = suite::parse_document(suite, test::read_file(suite));
  std::vector<std::string> plugins{"there.so"};
  suite::resolve_scripts(document, plugins);
  const std::string file = "python:" + (folder / "mine.py").string();
  CHECK(plugins == std::vector<std::string>{"there.so", file + ":Mine", file + ":Other"});
  const auto& mechanisms = document.value["mechanisms"];
  CHECK(mechanisms["ours"]["use"] == "mine");
  CHECK(mechanisms["python:mine.py:Other"]["use"] == "mine_other");
  CHECK_FALSE(mechanisms["softmax"].contains("use"));
  CHECK(document.value["profiles"]["quick"]["mechanisms"]["again"]["use"] == "mine");

  document = suite::parse_document(
      suite, R"({"name": "s", "task": "kernel", "mechanisms": ["python:mine.py:Mine", "flash"]})");
  suite::resolve_scripts(document, plugins);
  CHECK(document.value["mechanisms"] == nlohmann::ordered_json({"mine", "flash"}));
}

TEST_CASE("a word that cannot be taken is placed in the suite, TorchScript's among them",
          "[suite]") {
  const test::TemporaryFolder folder;
  const std::string suite = folder / "suite.json";
  const auto complaint = [&](const std::string& mechanisms) {
    suite::Document document = suite::parse_document(
        suite, "{\"name\": \"s\", \"task\": \"kernel\",\n\"mechanisms\": " + mechanisms + "}");
    std::vector<std::string> plugins;
    try {
      suite::resolve_scripts(document, plugins);
    } catch (const UsageFailure& failure) {
      return std::string(failure.what());
    }
    return std::string();
  };
  using Catch::Matchers::StartsWith;
  CHECK_THAT(complaint("[\"python:../../x.py:X\"]"),
             StartsWith(suite + ":2: /mechanisms/0: python:../../x.py:X: ") &&
                 Contains("there is no file"));
  CHECK_THAT(complaint("[\"torchscript:../../x.pt\"]"),
             StartsWith(suite + ":2: /mechanisms/0: torchscript:../../x.pt: ") &&
                 Contains("TorchScript was removed"));
  CHECK_THAT(complaint("{\"a\":\n{\"use\": \"x.pt\"}}"),
             StartsWith(suite + ":3: /mechanisms/a/use: ") && Contains("python:FILE.py:NAME"));
  CHECK_THAT(complaint("{\"torchscript:x.pt\": {}}"),
             StartsWith(suite + ":2: /mechanisms/torchscript:x.pt: "));
  CHECK(complaint("{\"x.pt\": {\"use\": \"softmax\"}}").empty());
}
