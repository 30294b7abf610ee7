#include "harness/suite/suite_entries.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

TEST_CASE("torchscript:FILE becomes a plugin and the name of its mechanism", "[suite]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "mine.pt", "");
  test::write_file(folder / "other.pt", "");
  const std::string suite = folder / "suite.json";
  test::write_file(suite, R"({"name": "s", "task": "kernel",
    "mechanisms": {"ours": {"use": "torchscript:mine.pt"}, "torchscript:other.pt": {},
                   "softmax": {}},
    "profiles": {"quick": {"mechanisms": {"again": {"use": "torchscript:mine.pt"}}}}})");
  suite::Document document = suite::parse_document(suite, test::read_file(suite));
  std::vector<std::string> plugins{"there.so"};
  suite::resolve_scripts(document, plugins);
  CHECK(plugins == std::vector<std::string>{"there.so", folder / "mine.pt", folder / "other.pt"});
  const auto& mechanisms = document.value["mechanisms"];
  CHECK(mechanisms["ours"]["use"] == "mine");
  CHECK(mechanisms["torchscript:other.pt"]["use"] == "other");
  CHECK_FALSE(mechanisms["softmax"].contains("use"));
  CHECK(document.value["profiles"]["quick"]["mechanisms"]["again"]["use"] == "mine");

  document = suite::parse_document(
      suite, R"({"name": "s", "task": "kernel", "mechanisms": ["torchscript:mine.pt", "flash"]})");
  suite::resolve_scripts(document, plugins);
  CHECK(document.value["mechanisms"] == nlohmann::ordered_json({"mine", "flash"}));
}

TEST_CASE("a torchscript file that a suite names in vain is placed in the suite", "[suite]") {
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
  CHECK_THAT(complaint("[\"torchscript:../../x.pt\"]"),
             StartsWith(suite + ":2: /mechanisms/0: torchscript:../../x.pt: ") &&
                 Contains("there is no file"));
  CHECK_THAT(complaint("{\"a\":\n{\"use\": \"torchscript:x.so\"}}"),
             StartsWith(suite + ":3: /mechanisms/a/use: "));
  CHECK_THAT(complaint("{\"torchscript:x.pt\": {}}"),
             StartsWith(suite + ":2: /mechanisms/torchscript:x.pt: "));
}

TEST_CASE("a torchscript file that cannot be taken is refused by name", "[suite]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "Two-Words.pt", "");
  std::vector<std::string> plugins;
  const auto take = [&](const std::string& word) {
    return suite::resolve_script(word, folder.path(), plugins);
  };
  CHECK(take("softmax") == "softmax");
  CHECK_THROWS_WITH(take("torchscript:no.pt"), Contains("there is no file"));
  CHECK_THROWS_WITH(take("torchscript:no.so"), Contains("ends in .pt"));
  CHECK_THROWS_WITH(take("torchscript:"), Contains("ends in .pt"));
  CHECK_THROWS_WITH(take("torchscript:Two-Words.pt"), Contains("lower-case letters"));
  CHECK(plugins.empty());
}
