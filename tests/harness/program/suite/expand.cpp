#include <set>

#include "core/failure.hpp"
#include "harness/program/suite/suite.hpp"
#include "tests/harness/program/suite/catalogue_fixture.hpp"
#include "tests/support/catch.hpp"

using attnbench::OptionValue;
using attnbench::Window;

namespace {

using attnbench::suite::Choices;
using attnbench::suite::Expanded;
using attnbench::suite::Json;

Expanded expanded(const std::string& text, const Choices& choices = {}) {
  const auto document = attnbench::suite::parse_document("s.json", text);
  return attnbench::suite::expand(document, attnbench::test::catalogue(), choices);
}

Choices with_set(const std::string& flag) {
  Choices choices;
  choices.set = {flag};
  return choices;
}

std::vector<std::string> values_of(const Expanded& suite, const std::string& part,
                                   const std::string& name) {
  std::vector<std::string> values;
  for (const attnbench::Cell& one : suite.cells) {
    const Json cell = one;
    values.push_back(cell[part].contains(name) ? cell[part][name].dump() : "-");
  }
  return values;
}

std::vector<std::string> lengths(const Expanded& suite) {
  return values_of(suite, "settings", "length");
}

using Texts = std::vector<std::string>;

/// A suite of the kernel task with these further members.
std::string suite_text(const std::string& members) {
  return R"({"name": "s", "task": "kernel", )" + members + "}";
}
Expanded expanded_of(const std::string& members, const Choices& choices = {}) {
  return expanded(suite_text(members), choices);
}

}  // namespace
TEST_CASE("What differs from published code goes into the result's header", "[suite]") {
  attnbench::Catalogue catalogue = attnbench::test::catalogue();
  const Json departure = {{"what", "no 1/sqrt(D)"}, {"how", "scale=1"}};
  for (auto& mechanism : catalogue.mechanisms) {
    if (mechanism.name != "window") mechanism.differs_from = {{"no 1/sqrt(D)", "scale=1"}};
  }
  catalogue.tasks.front().differs_from = {{"no 1/sqrt(D)", "scale=1"}};
  const std::string text = suite_text(R"("mechanisms": ["flash", "window"])");
  const auto suite =
      attnbench::suite::expand(attnbench::suite::parse_document("s.json", text), catalogue, {});
  const Json known = Json::array({departure});
  const Json want = {{"softmax", known}, {"kernel", known}};
  CHECK(suite.header["differs_from"] == want);
  CHECK_FALSE(expanded(text).header.contains("differs_from"));
}

TEST_CASE("Precedence: preset, set, the task's set, entry, --set", "[suite]") {
  const std::string preset = R"("preset": "latte_v1.figure_4",)";
  const std::string head = R"({"name": "s", )";
  const std::string tail = R"("mechanisms": ["softmax"]})";
  CHECK(lengths(expanded(head + preset + R"("task": "kernel",)" + tail)) == Texts{"5000"});
  const std::string set = R"("set": {"length": 10},)";
  CHECK(lengths(expanded(head + preset + set + R"("task": "kernel",)" + tail)) == Texts{"10"});
  const std::string tasks = R"("tasks": {"a": {"task": "kernel", "set": {"length": 20}}},)";
  CHECK(lengths(expanded(head + preset + set + tasks + tail)) == Texts{"20"});
  const std::string entry = R"("mechanisms": {"softmax": {"length": 30}}})";
  CHECK(lengths(expanded(head + preset + set + tasks + entry)) == Texts{"30"});
  CHECK(lengths(expanded(head + preset + set + tasks + entry, with_set("length=40"))) ==
        Texts{"40"});
}

TEST_CASE("A list is an axis; the first key varies slowest", "[suite]") {
  const Expanded suite =
      expanded_of(R"("set": {"length": [1, 2], "batch": [3, 4]}, "mechanisms": ["softmax"])");
  CHECK(lengths(suite) == Texts{"1", "1", "2", "2"});
  CHECK(values_of(suite, "settings", "batch") == Texts{"3", "4", "3", "4"});
  CHECK(suite.cells[0].varies == Texts{"length", "batch"});
  // Entries keep the suite's order, not the alphabet's.
  const Expanded entries = expanded_of(R"("mechanisms": {"window": {}, "latte": {}, "flash": {}})");
  REQUIRE(entries.cells.size() == 3);
  CHECK(entries.header["labels"] == Json({"window", "latte", "flash"}));
  CHECK(entries.cells[2].mechanism == "softmax");
  CHECK(entries.cells[2].implementation == "tiled");
  // One cell under two labels is two cells with ids of their own.
  const Expanded twice = expanded_of(R"("mechanisms": {"a": {"use": "flash"},
      "b": {"use": "softmax", "implementation": "tiled"}})");
  REQUIRE(twice.cells.size() == 2);
  CHECK(twice.cells[0].id != twice.cells[1].id);
}

TEST_CASE("run --with adds a mechanism to every task that does not name its own", "[suite]") {
  Choices choices;
  choices.with = {"latte"};
  const std::string tasks = R"({"name": "s", "tasks": {"all": {"task": "kernel"},
    "some": {"task": "kernel", "set": {"batch": 7}, "mechanisms": ["softmax"]}}, )";
  for (const char* mechanisms : {R"(["softmax"])", R"({"softmax": {}})"}) {
    const Expanded suite = expanded(tasks + R"("mechanisms": )" + mechanisms + "}", choices);
    REQUIRE(suite.cells.size() == 3);
    CHECK(suite.cells[1].label == "latte");
    CHECK(suite.cells[1].task_label == "all");
    CHECK(suite.header["labels"] == Json({"softmax", "latte"}));
  }
  const std::string simple = suite_text(R"("mechanisms": ["latte"])");
  CHECK_THROWS_WITH(expanded(simple, choices),
                    Catch::Contains("--with latte: the suite has a mechanism labelled so already"));
  const std::string picky = R"({"name": "s", "tasks": {"some": {"task": "kernel",
    "mechanisms": ["softmax"]}}, "mechanisms": ["softmax"]})";
  CHECK_THROWS_WITH(expanded(picky, choices), Catch::Contains("expected a task for all"));
  choices.with = {"lattte"};
  CHECK_THROWS_WITH(expanded(simple, choices), Catch::Contains("did you mean \"latte\""));
}

TEST_CASE("A zip makes one axis of several keys", "[suite]") {
  const std::string text = suite_text(R"("set": {"heads": 2},
      "zip": {"length": [10, 20], "batch": [4, 2]}, "mechanisms": ["softmax"])");
  const Expanded suite = expanded(text);
  CHECK(lengths(suite) == Texts{"10", "20"});
  CHECK(values_of(suite, "settings", "batch") == Texts{"4", "2"});
  SECTION("a higher layer takes one key out of it") {
    const Expanded changed = expanded(text, with_set("batch=7"));
    CHECK(lengths(changed) == Texts{"10", "20"});
    CHECK(values_of(changed, "settings", "batch") == Texts{"7", "7"});
  }
  SECTION("several zips multiply") {
    const Expanded two = expanded_of(
        R"("zip": [{"length": [10, 20], "batch": [4, 2]}, {"heads": [1, 2], "head_dim": [8, 16]}],
      "mechanisms": ["softmax"])");
    CHECK(two.cells.size() == 4);
  }
}

TEST_CASE("Options that a mechanism lacks are dropped, and equal cells are one", "[suite]") {
  const Expanded suite = expanded_of(
      R"("set": {"latents_total": [64, 128, 256]}, "mechanisms": ["softmax", "latte"])");
  REQUIRE(suite.cells.size() == 4);
  CHECK(suite.cells[0].options.empty());
  CHECK(values_of(suite, "options", "latents_total") == Texts{"-", "64", "128", "256"});
  CHECK(suite.header["tasks"]["kernel"]["axis"] == "latents_total");
}

TEST_CASE("Sizes may be expressions of other sizes", "[suite]") {
  const Expanded suite = expanded_of(
      R"("set": {"length": [1000, 3000], "width": 128, "latents_total": "width", "query_chunk": "length/2"},
      "mechanisms": ["softmax", "latte"])");
  CHECK(values_of(suite, "options", "query_chunk") == Texts{"500", "1500", "-", "-"});
  CHECK(values_of(suite, "options", "latents_total") == Texts{"-", "-", "128", "128"});
  SECTION("0 stands for the derived size") {
    const Expanded derived =
        expanded_of(R"("set": {"heads": 2, "head_dim": 48, "length": "2*width+head_dim/2"},
      "mechanisms": ["softmax"])");
    CHECK(lengths(derived) == Texts{"216"});
  }
}

TEST_CASE("Batch and length of a ragged batch follow from its lengths", "[suite]") {
  const Expanded suite = expanded_of(
      R"("set": {"lengths": ["512+512+100", "8", ""], "query_chunk": "length/4+batch"},
      "mechanisms": ["softmax"])");
  CHECK(values_of(suite, "settings", "lengths") == Texts{"\"2x512+100\"", "\"8\"", "\"\""});
  CHECK(values_of(suite, "settings", "batch") == Texts{"3", "1", "1"});
  CHECK(lengths(suite) == Texts{"512", "8", "1024"});
  CHECK(values_of(suite, "options", "query_chunk") == Texts{"131", "3", "257"});
  SECTION("sizes that are said besides may say the same, and have the same id") {
    const auto id = [](const std::string& set) {
      return expanded_of(R"("set": {)" + set + R"(}, "mechanisms": ["softmax"])").cells.at(0).id;
    };
    CHECK(id(R"("lengths": "2x64+9")") ==
          id(R"("lengths": "64 + 64 + 9", "batch": 3, "length": "16*heads")"));
    CHECK(id(R"("lengths": "2x64+9")") != id(R"("lengths": "64+9+64")"));
  }
  SECTION("of the command line, too") {
    const Expanded flagged = expanded_of(R"("mechanisms": ["latte"])", with_set("lengths=9+3x4"));
    CHECK(values_of(flagged, "settings", "batch") == Texts{"4"});
  }
}

TEST_CASE("A window counts the token itself", "[suite]") {
  const auto window = [](const std::string& pattern, const std::string& value) {
    return expanded_of(R"("set": {"pattern": ")" + pattern + R"(", "window": )" + value +
                       R"(}, "mechanisms": ["window"])")
        .cells[0]
        .options.at("window");
  };
  CHECK(window("causal", "128") == OptionValue(Window{127, 0}));
  CHECK(window("bidirectional", "128") == OptionValue(Window{64, 63}));
  CHECK(window("bidirectional", "129") == OptionValue(Window{64, 64}));
  CHECK(window("causal", "\"length/8\"") == OptionValue(Window{127, 0}));
  CHECK(window("causal", R"({"left": 5, "right": 2})") == OptionValue(Window{5, 2}));
}

TEST_CASE("A profile is a merge patch", "[suite]") {
  const std::string text = suite_text(R"("set": {"length": [1, 2], "batch": 2},
      "mechanisms": {"softmax": {}, "latte": {}}, "measure": {"rounds": 7},
      "profiles": {"quick": {"set": {"length": 5, "batch": null}, "mechanisms": {"latte": null},
      "measure": {"max_seconds": 0.25}}})");
  Choices quick;
  quick.profile = "quick";
  const Expanded suite = expanded(text, quick);
  REQUIRE(suite.cells.size() == 1);
  CHECK(suite.cells[0].settings.at("length") == OptionValue(std::int64_t{5}));
  CHECK(suite.cells[0].settings.at("batch") == OptionValue(std::int64_t{1}));
  CHECK(suite.measure["rounds"] == 7);
  CHECK(suite.measure["max_seconds"] == 0.25);
  CHECK(suite.header["profile"] == "quick");
  CHECK(expanded(text).cells.size() == 4);
}

TEST_CASE("Ids hash what was said and differs from the default, and nothing else", "[suite]") {
  const auto id = [](const std::string& rest) { return expanded_of(rest).cells[0].id; };
  // Written down once: a change here breaks every comparison with older results.
  const std::string plain = id(R"("mechanisms": ["softmax"])");
  CHECK(plain == "922bfac4f0aa");
  CHECK(id(R"("set": {"length": 256, "latents_total": 64}, "mechanisms": ["latte"])") ==
        "18817d4e4a30");
  CHECK(id(R"("title": "T", "mechanisms": {"another label": {"use": "softmax"}})") == plain);
  CHECK(id(R"("set": {"length": 1024, "batch": 1}, "mechanisms": ["softmax"])") == plain);
  CHECK(id(R"("mechanisms": ["softmax"], "figures": ["time"])") == plain);
  CHECK(id(R"("set": {"length": 1023}, "mechanisms": ["softmax"])") != plain);
  CHECK(id(R"("mechanisms": ["softmax/composite"])") != plain);
  CHECK(id(R"("device": "cuda", "mechanisms": ["softmax"])") != plain);
}

TEST_CASE("A new option with a default changes no id", "[suite]") {
  const auto document =
      attnbench::suite::parse_document("s.json", suite_text(R"("mechanisms": ["latte"])"));
  attnbench::Catalogue grown = attnbench::test::catalogue();
  const auto before = attnbench::suite::expand(document, grown, {}).cells;
  const auto option = attnbench::Option::integer("new", 3, "");
  for (auto& mechanism : grown.mechanisms) mechanism.options.push_back(option);
  for (auto& task : grown.tasks) task.settings.push_back(option);
  CHECK(before[0].id == attnbench::suite::expand(document, grown, {}).cells[0].id);
}

TEST_CASE("A mechanism in Python is known by its file and name, whatever it is called",
          "[suite][python]") {
  attnbench::Catalogue catalogue = attnbench::test::catalogue();
  const auto id = [&](const std::string& name, const std::string& origin) {
    catalogue.mechanisms[0].name = name;
    catalogue.mechanisms[0].origin = origin;
    const auto document = attnbench::suite::parse_document(
        "/a/s.json", suite_text(R"("mechanisms": [")" + name + R"("])"));
    return attnbench::suite::expand(document, catalogue, {}).cells[0].id;
  };
  const std::string near = id("near", "python:/a/near.py:Near");
  CHECK(id("mine", "python:/a/near.py:Near") == near);
  CHECK(id("near", "python:/a/b/near.py:Near") != near);
  CHECK(id("near", "python:/a/near.py:near") != near);
  CHECK(id("near", "built in") != near);
}

TEST_CASE("An option of a plugin that a task's setting hides is refused", "[suite]") {
  attnbench::Catalogue catalogue = attnbench::test::catalogue();
  catalogue.mechanisms[0].origin = "python:/a/near.py:Near";
  for (const char* name : {"batch", "rounds"}) {
    catalogue.mechanisms[0].options.push_back(attnbench::Option::integer(name, 7, ""));
  }
  const auto document =
      attnbench::suite::parse_document("s.json", suite_text(R"("mechanisms": ["softmax"])"));
  using Catch::Matchers::Contains;
  CHECK_THROWS_WITH(attnbench::suite::expand(document, catalogue, {}),
                    Contains("its option batch has the name of a setting of the task kernel") &&
                        Contains("its option rounds has the name of something else in suites") &&
                        Contains("/a/near.py"));
}

TEST_CASE("Several tasks over the same mechanisms", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "tasks": {"time": {"task": "kernel"},
      "decode": {"set": {"steps": 4}, "mechanisms": ["latte"], "figures": ["state"]}},
      "mechanisms": ["softmax", "latte"]})");
  REQUIRE(suite.cells.size() == 3);
  CHECK(suite.cells[2].task_label == "decode");
  CHECK(suite.cells[2].settings.at("steps") == OptionValue(std::int64_t{4}));
  CHECK(suite.header["tasks"]["decode"]["figures"] == Json({"state"}));
  CHECK(suite.header["tasks"]["time"]["figures"].size() == 4);
}

TEST_CASE("no expression takes long on any label", "[suite]") {
  const std::string text = suite_text(R"("set": {"length": 64},
      "mechanisms": {")" + std::string(4000, 'a') +
                                      R"(": {"use": "softmax"}})");
  Choices choices;
  for (const char* expression : {"(a|a)*c$", "(a*)*b{3}", "(.*)(.*)(.*)[0-9]z", "a{1000}z"}) {
    choices.only = {expression};
    CHECK_THROWS_AS(expanded(text, choices), attnbench::UsageFailure);
  }
  choices.only = {std::string(30000, '(')};
  CHECK_THROWS_WITH(expanded(text, choices), Catch::Contains("not a regular expression"));
  choices.only = {"(?i)SOFTMAX"};
  CHECK(expanded(text, choices).cells.size() == 1);
}

TEST_CASE("the device flag stands above the suite's and the entries' device", "[suite]") {
  const std::string text = suite_text(R"("device": "cuda:1",
      "mechanisms": {"softmax": {}, "latte": {"device": "cuda:2"}})");
  CHECK(expanded(text).cells[0].device == "cuda:1");
  CHECK(expanded(text).cells[1].device == "cuda:2");
  Choices choices;
  choices.device = "cpu";
  CHECK(expanded(text, choices).cells[1].device == "cpu");
}

TEST_CASE("set flags take lists, doublings and steps", "[suite]") {
  const auto with = [](const std::string& flag) {
    return expanded_of(R"("mechanisms": ["latte"])", with_set(flag));
  };
  CHECK(lengths(with("length=1024,2048")) == Texts{"1024", "2048"});
  CHECK(lengths(with("length=256..2000")) == Texts{"256", "512", "1024"});
  CHECK(lengths(with("length=1000..3000:1000")) == Texts{"1000", "2000", "3000"});
  CHECK(lengths(with("length=width*2")) == Texts{"512"});
  CHECK(with("implementation=scan,chunked").cells.at(1).implementation == "chunked");
  CHECK(with("rounds=2").measure["rounds"] == 2);
  CHECK(with("task=decode").cells[0].task == "decode");
  // A suite made on the command line.
  const Expanded suite =
      attnbench::suite::expand(attnbench::suite::from_command_line({"latte/scan", "flash"}),
                               attnbench::test::catalogue(), with_set("length=256..1024"));
  REQUIRE(suite.cells.size() == 6);
  CHECK(suite.cells[0].implementation == "scan");
  CHECK(suite.header["name"] == "adhoc-latte-scan-flash");
}

TEST_CASE("only and skip search the cell's line and its values", "[suite]") {
  const std::string text = suite_text(R"("set": {"length": [64, 128]},
      "mechanisms": ["softmax", "latte"])");
  Choices choices;
  choices.only = {"latte"};
  const Expanded suite = expanded(text, choices);
  CHECK(suite.cells.size() == 2);
  CHECK(attnbench::suite::describe(suite.cells[0]) ==
        "kernel  latte  length=64  [" + suite.cells[0].id + "]");
  attnbench::Cell stacked = suite.cells[0];
  stacked.settings["stack"] = std::string();  // which says nothing
  stacked.varies = {"stack", "length"};
  CHECK(attnbench::suite::describe(stacked) == attnbench::suite::describe(suite.cells[0]));
  choices.skip = {"length=64\\b"};
  CHECK(lengths(expanded(text, choices)) == Texts{"128"});
  choices.only = {"nothing like it"};
  REQUIRE_THROWS_AS(expanded(text, choices), attnbench::UsageFailure);
  CHECK_THROWS_WITH(expanded(text, choices), Catch::Contains("4 cells"));
  choices.only = {"("};
  CHECK_THROWS_WITH(expanded(text, choices), Catch::Contains("not a regular expression"));
}
