#include <set>

#include "core/failure.hpp"
#include "harness/suite/suite.hpp"
#include "tests/harness/suite/catalogue_fixture.hpp"
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
  for (const attnbench::run::Cell& one : suite.cells) {
    const Json cell = one;
    values.push_back(cell[part].contains(name) ? cell[part][name].dump() : "-");
  }
  return values;
}

std::vector<std::string> lengths(const Expanded& suite) {
  return values_of(suite, "settings", "length");
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("What differs from published code goes into the result's header", "[suite]") {
  attnbench::suite::Catalogue catalogue = attnbench::test::catalogue();
  const Json departure = {{"what", "no 1/sqrt(D)"}, {"how", "scale=1"}};
  for (auto& mechanism : catalogue.mechanisms) {
    if (mechanism.name != "window") mechanism.differs_from = {{"no 1/sqrt(D)", "scale=1"}};
  }
  catalogue.tasks.front().differs_from = {{"no 1/sqrt(D)", "scale=1"}};
  const std::string text = R"({"name": "s", "task": "kernel", "mechanisms": ["flash", "window"]})";
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
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel",
    "set": {"length": [1, 2], "batch": [3, 4]}, "mechanisms": ["softmax"]})");
  CHECK(lengths(suite) == Texts{"1", "1", "2", "2"});
  CHECK(values_of(suite, "settings", "batch") == Texts{"3", "4", "3", "4"});
  CHECK(suite.cells[0].varies == Texts{"length", "batch"});
}

TEST_CASE("Entries keep the suite's order, not the alphabet's", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel",
    "mechanisms": {"window": {}, "latte": {}, "flash": {}}})");
  REQUIRE(suite.cells.size() == 3);
  CHECK(suite.header["labels"] == Json({"window", "latte", "flash"}));
  CHECK(suite.cells[2].mechanism == "softmax");
  CHECK(suite.cells[2].implementation == "tiled");
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
  const std::string simple = R"({"name": "s", "task": "kernel", "mechanisms": ["latte"]})";
  CHECK_THROWS_WITH(expanded(simple, choices),
                    Catch::Contains("--with latte: the suite has a mechanism labelled so already"));
  const std::string picky = R"({"name": "s", "tasks": {"some": {"task": "kernel",
    "mechanisms": ["softmax"]}}, "mechanisms": ["softmax"]})";
  CHECK_THROWS_WITH(expanded(picky, choices), Catch::Contains("expected a task for all"));
  choices.with = {"lattte"};
  CHECK_THROWS_WITH(expanded(simple, choices), Catch::Contains("did you mean \"latte\""));
}

TEST_CASE("A zip makes one axis of several keys", "[suite]") {
  const std::string text = R"({"name": "s", "task": "kernel", "set": {"heads": 2},
    "zip": {"length": [10, 20], "batch": [4, 2]}, "mechanisms": ["softmax"]})";
  const Expanded suite = expanded(text);
  CHECK(lengths(suite) == Texts{"10", "20"});
  CHECK(values_of(suite, "settings", "batch") == Texts{"4", "2"});
  SECTION("a higher layer takes one key out of it") {
    const Expanded changed = expanded(text, with_set("batch=7"));
    CHECK(lengths(changed) == Texts{"10", "20"});
    CHECK(values_of(changed, "settings", "batch") == Texts{"7", "7"});
  }
  SECTION("several zips multiply") {
    const Expanded two = expanded(R"({"name": "s", "task": "kernel",
      "zip": [{"length": [10, 20], "batch": [4, 2]}, {"heads": [1, 2], "head_dim": [8, 16]}],
      "mechanisms": ["softmax"]})");
    CHECK(two.cells.size() == 4);
  }
}

TEST_CASE("Options that a mechanism lacks are dropped, and equal cells are one", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel",
    "set": {"latents_total": [64, 128, 256]}, "mechanisms": ["softmax", "latte"]})");
  REQUIRE(suite.cells.size() == 4);
  CHECK(suite.cells[0].options.empty());
  CHECK(values_of(suite, "options", "latents_total") == Texts{"-", "64", "128", "256"});
  CHECK(suite.header["tasks"]["kernel"]["axis"] == "latents_total");
}

TEST_CASE("One cell under two labels is two cells with ids of their own", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel",
    "mechanisms": {"a": {"use": "flash"}, "b": {"use": "softmax", "implementation": "tiled"}}})");
  REQUIRE(suite.cells.size() == 2);
  CHECK(suite.cells[0].id != suite.cells[1].id);
}

TEST_CASE("Sizes may be expressions of other sizes", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel",
    "set": {"length": [1000, 3000], "width": 128, "latents_total": "width", "query_chunk": "length/2"},
    "mechanisms": ["softmax", "latte"]})");
  CHECK(values_of(suite, "options", "query_chunk") == Texts{"500", "1500", "-", "-"});
  CHECK(values_of(suite, "options", "latents_total") == Texts{"-", "-", "128", "128"});
  SECTION("0 stands for the derived size") {
    const Expanded derived = expanded(R"({"name": "s", "task": "kernel",
      "set": {"heads": 2, "head_dim": 48, "length": "2*width+head_dim/2"},
      "mechanisms": ["softmax"]})");
    CHECK(lengths(derived) == Texts{"216"});
  }
}

TEST_CASE("A window counts the token itself", "[suite]") {
  const auto window = [](const std::string& pattern, const std::string& value) {
    return expanded(R"({"name": "s", "task": "kernel", "set": {"pattern": ")" + pattern +
                    R"(", "window": )" + value + R"(}, "mechanisms": ["window"]})")
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
  const std::string text = R"({"name": "s", "task": "kernel", "set": {"length": [1, 2], "batch": 2},
    "mechanisms": {"softmax": {}, "latte": {}}, "measure": {"rounds": 7},
    "profiles": {"quick": {"set": {"length": 5, "batch": null}, "mechanisms": {"latte": null},
                           "measure": {"max_seconds": 0.25}}}})";
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
  const auto id = [](const std::string& rest) {
    return expanded(R"({"name": "s", "task": "kernel", )" + rest + "}").cells[0].id;
  };
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
  const auto document = attnbench::suite::parse_document(
      "s.json", R"({"name": "s", "task": "kernel", "mechanisms": ["latte"]})");
  Json grown = Json::parse(attnbench::test::catalogue_text());
  const auto before = attnbench::suite::expand(document, attnbench::test::catalogue(), {}).cells;
  const Json option = {{"name", "new"}, {"type", "integer"}, {"default", 3}, {"meaning", ""}};
  for (Json& mechanism : grown["mechanisms"]) mechanism["options"].push_back(option);
  for (Json& task : grown["tasks"]) task["settings"].push_back(option);
  const auto catalogue = grown.get<attnbench::suite::Catalogue>();
  const auto after = attnbench::suite::expand(document, catalogue, {}).cells;
  CHECK(before[0].id == after[0].id);
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

TEST_CASE("set flags take lists, doublings and steps", "[suite]") {
  const std::string text = R"({"name": "s", "task": "kernel", "mechanisms": ["latte"]})";
  CHECK(lengths(expanded(text, with_set("length=1024,2048"))) == Texts{"1024", "2048"});
  CHECK(lengths(expanded(text, with_set("length=256..2000"))) == Texts{"256", "512", "1024"});
  CHECK(lengths(expanded(text, with_set("length=1000..3000:1000"))) ==
        Texts{"1000", "2000", "3000"});
  CHECK(lengths(expanded(text, with_set("length=width*2"))) == Texts{"512"});
  const Expanded implementations = expanded(text, with_set("implementation=scan,chunked"));
  REQUIRE(implementations.cells.size() == 2);
  CHECK(implementations.cells[1].implementation == "chunked");
  CHECK(expanded(text, with_set("rounds=2")).measure["rounds"] == 2);
  CHECK(expanded(text, with_set("task=decode")).cells[0].task == "decode");
}

TEST_CASE("only and skip search the cell's line and its values", "[suite]") {
  const std::string text = R"({"name": "s", "task": "kernel", "set": {"length": [64, 128]},
    "mechanisms": ["softmax", "latte"]})";
  Choices choices;
  choices.only = {"latte"};
  CHECK(expanded(text, choices).cells.size() == 2);
  choices.skip = {"length=64\\b"};
  CHECK(lengths(expanded(text, choices)) == Texts{"128"});
  choices.only = {"nothing like it"};
  REQUIRE_THROWS_AS(expanded(text, choices), attnbench::UsageFailure);
  CHECK_THROWS_WITH(expanded(text, choices), Catch::Contains("4 cells"));
  choices.only = {"("};
  CHECK_THROWS_WITH(expanded(text, choices), Catch::Contains("not a regular expression"));
}

TEST_CASE("no expression takes long on any label", "[suite]") {
  const std::string text = R"({"name": "s", "task": "kernel", "set": {"length": 64},
    "mechanisms": {")" + std::string(4000, 'a') +
                           R"(": {"use": "softmax"}}})";
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
  const std::string text = R"({"name": "s", "task": "kernel", "device": "cuda:1",
    "mechanisms": {"softmax": {}, "latte": {"device": "cuda:2"}}})";
  CHECK(expanded(text).cells[0].device == "cuda:1");
  CHECK(expanded(text).cells[1].device == "cuda:2");
  Choices choices;
  choices.device = "cpu";
  CHECK(expanded(text, choices).cells[1].device == "cpu");
}

TEST_CASE("A suite made on the command line", "[suite]") {
  const auto document = attnbench::suite::from_command_line({"latte/scan", "flash"});
  const Expanded suite = attnbench::suite::expand(document, attnbench::test::catalogue(),
                                                  with_set("length=256..1024"));
  REQUIRE(suite.cells.size() == 6);
  CHECK(suite.cells[0].implementation == "scan");
  CHECK(suite.header["name"] == "adhoc-latte-scan-flash");
}

TEST_CASE("Cells are described in one line", "[suite]") {
  const Expanded suite = expanded(R"({"name": "s", "task": "kernel", "set": {"length": [64, 128]},
    "mechanisms": {"latte, scan": {"use": "latte/scan"}}})");
  const std::string id = suite.cells[0].id;
  CHECK(attnbench::suite::describe(suite.cells[0]) ==
        "kernel  latte, scan  length=64  [" + id + "]");
}
