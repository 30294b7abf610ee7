#include "reports/verdict/around.hpp"

#include <utility>

#include "core/text/shell.hpp"
#include "reports/draw.hpp"
#include "reports/verdict/input.hpp"
#include "tests/reports/figures/spec_parts.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Words = std::vector<std::string>;

namespace {

/// Exact attention and latte cross at 512 tokens; `change` may say more of each cell.
template <class Change>
result::Result crossed(const Change& change) {
  std::vector<result::CellRecord> cells;
  for (const auto& [length, exact, own] :
       {std::tuple(256, 1e-3, 2e-3), std::tuple(512, 4e-3, 4e-3), std::tuple(1024, 16e-3, 8e-3)}) {
    for (const auto& [label, seconds] : {std::pair("softmax", exact), std::pair("latte", own)}) {
      test::CellBuilder cell(label);
      cell.named(label + std::to_string(length)).length(length).set("key_length", length);
      cell.took(seconds).rounds({seconds * 0.99, seconds, seconds * 1.01});
      cell.reproduce = "attnbench run suite.json --only " + cell.id;
      change(cell);
      cells.push_back(cell);
    }
  }
  result::Result result = test::result_of(cells);
  result.run.command = "attnbench run other.json --out somewhere";
  return result;
}

result::Result crossed() {
  return crossed([](test::CellBuilder&) {});
}

/// The command for the only crossing of the first panel.
std::string around(const result::Result& result, const std::string& label = "latte") {
  const reports::Panel panel = test::first_panel(result);
  for (const auto& one : reports::verdict::crossings_of(panel)) {
    if (one.label == label && one.crossing == reports::verdict::CrossingKind::found) {
      return reports::verdict::command_around(panel, one);
    }
  }
  return "no crossing";
}

Words words_around(const result::Result& result, const std::string& label = "latte") {
  return text::words_of_command(around(result, label)).value();
}

}  // namespace

TEST_CASE("around a crossing its two lines are measured at lengths about it, in more rounds",
          "[verdict]") {
  const result::Result result = crossed();
  const Words words = words_around(result);
  REQUIRE(words.size() == 9);
  CHECK(Words(words.begin(), words.begin() + 6) == Words{"attnbench", "run", "suite.json", "--only",
                                                         "^kernel  (latte|softmax)  ", "--length"});
  CHECK(Words(words.begin() + 7, words.end()) == Words{"--rounds", "10"});
  std::vector<double> lengths;
  for (std::size_t at = 0; at < words[6].size(); at = words[6].find_first_of(',', at) + 1) {
    lengths.push_back(std::stod(words[6].substr(at)));
    if (words[6].find(',', at) == std::string::npos) break;
  }
  REQUIRE(lengths.size() == 6);
  const auto crossing = reports::verdict::crossings_of(test::first_panel(result)).at(0);
  CHECK(lengths.front() < *crossing.low);
  CHECK(lengths.front() > *crossing.low / 1.5);
  CHECK(lengths.back() > crossing.high);
  CHECK(lengths.back() < crossing.high * 1.5);
  CHECK(std::is_sorted(lengths.begin(), lengths.end()));
  // More rounds than there were.
  const auto many = crossed([](test::CellBuilder& cell) {
    const double seconds = cell.timing["forward"].median_seconds;
    cell.rounds(std::vector<double>(8, seconds));
  });
  CHECK(words_around(many).back() == "22");
}

TEST_CASE("the command is the run's own, without what chose its cells and lengths", "[verdict]") {
  const auto called = [](const std::string& command) {
    const Words words = words_around(
        crossed([&](test::CellBuilder& cell) { cell.reproduce = command + " --only " + cell.id; }));
    return Words(words.begin(), words.end() - 6);
  };
  const Words plain{"attnbench", "run", "latte", "flash", "--threads", "1"};
  CHECK(called("attnbench run latte flash --threads 1") == plain);
  for (const char* set : {"--length 256..1024", "--length=256,512", "--set length=256,512",
                          "--set=length=256", "length=256", "--rounds 3", "--rounds=3"}) {
    INFO(set);
    CHECK(called("attnbench run latte flash " + std::string(set) + " --threads 1") == plain);
  }
  CHECK(called("attnbench run 'my suite.json' --set dtype=bfloat16") ==
        Words{"attnbench", "run", "my suite.json", "--set", "dtype=bfloat16"});
  // A file's text stays a word: no other command comes of it.
  CHECK(called("attnbench run x.json; rm -rf y")[2] == "x.json;");
  CHECK_THAT(around(crossed([](test::CellBuilder& cell) {
               cell.reproduce = "attnbench run x.json; true --only " + cell.id;
             })),
             Catch::Contains("'x.json;'"));
}

TEST_CASE("a result without its cells' commands has that of the run", "[verdict]") {
  result::Result result = crossed([](test::CellBuilder& cell) { cell.reproduce.clear(); });
  result.run.command = "attnbench run suites/x.json --profile quick --only latte --out y";
  const Words words = words_around(result);
  CHECK(Words(words.begin(), words.begin() + 5) ==
        Words{"attnbench", "run", "suites/x.json", "--profile", "quick"});
  for (const char* other : {"", "attnbench merge a b", "attnbench import x.jsonl",
                            "attnbench run --resume runs/x", "attnbench run 'x"}) {
    INFO(other);
    result.run.command = other;
    CHECK(around(result).empty());
  }
}

TEST_CASE("labels are found as they are, among others of their panel and their series",
          "[verdict]") {
  const auto named = crossed([](test::CellBuilder& cell) {
    if (cell.label == "latte") cell.label = "latte (a+b)";
  });
  CHECK(words_around(named, "latte (a+b)")[4] == "^kernel  (latte \\(a\\+b\\)|softmax)  ");
  // Another panel, and another series of the label.
  result::Result result = crossed([](test::CellBuilder& cell) {
    cell.set("batch", 1);
    if (cell.label == "latte") cell.option("taps", 4).option("unequal", 0.5);
  });
  const std::vector<result::CellRecord> cells = result.cells;
  for (result::CellRecord cell : cells) {
    cell.id += "b";
    cell.settings["batch"] = 8;
    result.cells.push_back(cell);
    if (cell.label != "latte") continue;
    cell.settings["batch"] = 1;
    cell.id += "t";
    cell.options["taps"] = 0;
    cell.options["unequal"] = 0.25;
    result.cells.push_back(cell);
  }
  const Words words = words_around(result, "latte, taps=4");
  CHECK(Words(words.begin() + 3, words.begin() + 7) ==
        Words{"--only", "^kernel  latte  .* batch=1( .*)? taps=4( |$)", "--only",
              "^kernel  softmax  .* batch=1( |$)"});
}

TEST_CASE("where other sizes change with the length there is no command around", "[verdict]") {
  CHECK(around(crossed([](test::CellBuilder& cell) {
          cell.set("batch", 4096 / cell.settings["length"].get<int>());
        })) == "");
  CHECK(around(crossed([](test::CellBuilder& cell) {
          if (cell.label == "latte") cell.option("taps", cell.settings["length"].get<int>() / 64);
        })) == "");
}

TEST_CASE("the mark of a crossing has its command", "[verdict]") {
  const auto mark_of = [](const result::Result& result) {
    const auto drawn = reports::draw("time", test::first_panel(result), {"softmax", "latte"}, {});
    const Json layers = test::layers_of(drawn.at(0).spec);
    for (const Json& layer : layers) {
      if (layer.contains("data") && layer["data"]["name"] == "crossings") {
        return layer["data"]["values"].at(0);
      }
    }
    return Json();
  };
  CHECK(mark_of(crossed())["command"] == around(crossed()));
  result::Result imported = crossed([](test::CellBuilder& cell) { cell.reproduce.clear(); });
  imported.run.command = "attnbench import x";
  CHECK(mark_of(imported)["series"] == "latte");
  CHECK_FALSE(mark_of(imported).contains("command"));
}
