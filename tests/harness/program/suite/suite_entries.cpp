#include "harness/program/suite/suite_entries.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;

namespace {

bool none_built_in(const std::string&) { return false; }

}  // namespace

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
  suite::resolve_scripts(document, plugins, none_built_in);
  const std::string file = "python:" + (folder / "mine.py").string();
  CHECK(plugins == std::vector<std::string>{"there.so", "mine=" + file + ":Mine",
                                            "mine_other=" + file + ":Other"});
  const auto& mechanisms = document.value["mechanisms"];
  CHECK(mechanisms["ours"]["use"] == "mine");
  CHECK(mechanisms["python:mine.py:Other"]["use"] == "mine_other");
  CHECK_FALSE(mechanisms["softmax"].contains("use"));
  CHECK(document.value["profiles"]["quick"]["mechanisms"]["again"]["use"] == "mine");

  document = suite::parse_document(
      suite, R"({"name": "s", "task": "kernel", "mechanisms": ["python:mine.py:Mine", "flash"]})");
  suite::resolve_scripts(document, plugins, none_built_in);
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
      suite::resolve_scripts(document, plugins, none_built_in);
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
  CHECK_THAT(complaint("{\"a\":\n{\"use\": \"softmax\", \"as\": \"mine\"}}"),
             StartsWith(suite + ":3: /mechanisms/a/as: ") && Contains("a mechanism in Python"));
  CHECK_THAT(complaint("{\"a\": {\"use\": \"python:m:f\", \"as\": \"Mine\"}}"),
             Contains("\"Mine\": a name is lower-case letters"));
  CHECK_THAT(complaint("{\"torchscript:x.pt\": {}}"),
             StartsWith(suite + ":2: /mechanisms/torchscript:x.pt: "));
  CHECK(complaint("{\"x.pt\": {\"use\": \"softmax\"}}").empty());
}

TEST_CASE("no two words of Python have one name, and none has that of what is built in",
          "[suite][python]") {
  const test::TemporaryFolder folder;
  for (const char* file : {"a/near.py", "b/near.py", "softmax.py"}) {
    test::write_file(folder / file, "");
  }
  const auto built_in = [](const std::string& name) { return name == "softmax"; };
  std::vector<std::string> plugins;
  const auto named = [&](const std::string& word) {
    return suite::resolve_script(word, folder.path(), plugins, built_in);
  };
  CHECK(named("python:softmax.py:softmax") == "softmax_py");
  CHECK(named("python:a/near.py:near") == "near");
  CHECK(named("python:b/near.py:near") == "b_near");
  CHECK(named("python:b/near.py:Near") == "b_near_2");
  CHECK(named("python:models.gla:mix") == "models_mix");
  CHECK(named("python:models.delta:mix") == "models_delta_mix");
  CHECK(named("mine=python:a/near.py:near") == "mine");
  CHECK(named("python:b/near.py:near") == "b_near");  // as before
  CHECK(plugins.size() == 7);
  for (const auto& [word, complaint] : std::map<std::string, std::string>{
           {"mine=python:b/near.py:near", "the name mine is taken by python:/"},
           {"softmax=python:b/near.py:near", "the name softmax is taken by what is built in"},
           {"Mine=python:b/near.py:near", "a name is lower-case letters"},
           {"1=python:b/near.py:near", "a name is lower-case letters"}}) {
    CHECK_THROWS_WITH(named(word), Contains(complaint));
  }

  const std::string suite = folder / "suite.json";
  suite::Document document = suite::parse_document(suite, R"({"name": "s", "task": "kernel",
    "mechanisms": {"old": {"use": "python:a/near.py:near", "as": "old_near"},
                   "new": {"use": "python:b/near.py:near"}}})");
  plugins.clear();
  suite::resolve_scripts(document, plugins, built_in);
  CHECK(document.value["mechanisms"]["old"] == nlohmann::ordered_json({{"use", "old_near"}}));
  CHECK(document.value["mechanisms"]["new"]["use"] == "near");
}

TEST_CASE("python:FILE.py:NAME is looked for beside the suite", "[suite][python]") {
  const test::TemporaryFolder folder;
  test::write_file(folder / "near.py", "");
  std::vector<std::string> plugins;
  const auto none = [](const std::string&) { return false; };
  CHECK(suite::resolve_script("python:near.py:Near", folder.path(), plugins, none) == "near");
  CHECK(suite::resolve_script("python:near.py:Near", folder.path(), plugins, none) == "near");
  CHECK(suite::resolve_script("python:torch.nn.functional:relu", folder.path(), plugins, none) ==
        "torch_relu");
  CHECK(plugins ==
        std::vector<std::string>{"near=python:" + (folder / "near.py").string() + ":Near",
                                 "torch_relu=python:torch.nn.functional:relu"});
  const std::vector<std::pair<std::string, std::string>> words{
      {"python:nowhere.py:Near", "there is no file"},
      {"python:near.py", "expected python:FILE.py:NAME"},
      {"python:near.py:", "expected python:FILE.py:NAME"},
      {"python:near.py:a b", "expected python:FILE.py:NAME"},
      {"python::Near", "expected python:FILE.py:NAME"},
      {"python:a/b:Near", "is neither a file that ends in .py nor a module"}};
  for (const auto& [word, complaint] : words) {
    INFO(word);
    try {
      suite::resolve_script(word, folder.path(), plugins, none);
      FAIL("was taken");
    } catch (const UsageFailure& failure) {
      CHECK_THAT(failure.what(), Contains(complaint));
    }
  }
}
