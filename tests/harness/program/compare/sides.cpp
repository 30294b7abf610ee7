#include "harness/program/compare/sides.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using compare::MatchRule;

namespace {

Cell side_cell(const std::string& id, const std::string& label, int length, int chunk = 64) {
  Cell cell;
  cell.id = id;
  cell.label = label;
  cell.task = cell.task_label = "kernel";
  cell.mechanism = "latte";
  cell.settings["length"] = std::int64_t{length};
  cell.options["chunk"] = std::int64_t{chunk};
  cell.varies = {"length", "chunk"};
  return cell;
}

}  // namespace

TEST_CASE("cells of two builds are matched by task, label and axes", "[compare][ab]") {
  const auto matched =
      compare::match_cells({side_cell("1", "latte", 256), side_cell("2", "flash", 256)},
                           {side_cell("9", "luna", 256), side_cell("1", "latte", 256)}, {});
  REQUIRE(matched.matches.size() == 1);
  CHECK(matched.matches[0].name == "kernel latte chunk=64 length=256");
  CHECK(matched.matches[0].changed == "1-new");
  std::vector<std::string> ids;
  std::vector<std::string> labels;
  for (const Cell& cell : matched.cells) {
    ids.push_back(cell.id);
    labels.push_back(cell.label);
  }
  CHECK(ids == std::vector<std::string>{"1-base", "1-new", "1-again"});
  CHECK(labels == std::vector<std::string>{"latte", "latte, new", "latte, again"});
  REQUIRE(matched.missing.size() == 2);
  CHECK(matched.missing[0].name == "kernel flash chunk=64 length=256");
  Cell plain = side_cell("3", "softmax", 256);
  plain.settings["stack"] = std::string();
  plain.options.clear();
  plain.varies = {"length", "stack", "chunk"};
  CHECK(compare::match_cells({plain}, {}, {}).missing[0].name == "kernel softmax length=256");
  CHECK_FALSE(matched.missing[0].added);
  CHECK(matched.missing[1].added);

  compare::Comparison comparison;
  compare::add_missing(comparison, matched.missing);
  CHECK(comparison.pairs[0].verdict == compare::SpeedVerdict::gone);
  CHECK(comparison.pairs[1].verdict == compare::SpeedVerdict::added);
  CHECK(compare::exit_code(comparison, true) == ExitCode::undecided);
}

TEST_CASE("sides that differ in an option are matched without it", "[compare][ab]") {
  const MatchRule rule{true, {"chunk"}, true};
  const auto matched =
      compare::match_cells({side_cell("1", "latte", 256, 64), side_cell("5", "flash", 256)},
                           {side_cell("2", "latte", 256, 128), side_cell("5", "flash", 256)}, rule);
  REQUIRE(matched.matches.size() == 1);
  CHECK(matched.matches[0].name == "kernel latte length=256");
  CHECK(matched.equal == 1);
  CHECK_THROWS_WITH(
      compare::match_cells({side_cell("1", "latte", 256, 64), side_cell("2", "latte", 256, 32)},
                           {side_cell("3", "latte", 256, 128)}, rule),
      Catch::Contains("kernel latte length=256") && Catch::Contains("one value"));
}

TEST_CASE("two implementations are matched by their sizes", "[compare][ab]") {
  const auto matched = compare::match_cells(
      {side_cell("1", "latte/scan", 256)}, {side_cell("2", "latte/fused", 256)}, {false, {}, true});
  REQUIRE(matched.cells.size() == 3);
  CHECK(matched.cells[1].label == "latte/fused");
  CHECK(matched.cells[2].label == "latte/scan, again");
}

TEST_CASE("the plan of a run of two sides comes back from JSON", "[compare][ab]") {
  compare::SidesPlan plan;
  plan.suite = "ci_kernels";
  plan.base = "a";
  plan.changed = "b";
  plan.control = "a, again";
  plan.gate.rounds = 7;
  plan.matches = {{"kernel latte", "1-base", "1-new", "1-again"}};
  plan.missing = {{"kernel flash", true}};
  CHECK(plan.cells_of_second().empty());
  plan.builds = {{{"p.so"}, "/x/attnbench-worker"}, {{}, "/y/attnbench-worker"}};
  const auto back = nlohmann::json(plan).get<compare::SidesPlan>();
  CHECK(back.gate == plan.gate);
  CHECK(back.builds == plan.builds);
  CHECK(back.missing.at(0).added);
  CHECK(back.cells_of_second() == std::set<std::string>{"1-new"});
  CHECK_THROWS_AS(nlohmann::json::parse(R"({"base": "a"})").get<compare::SidesPlan>(), SchemaError);
}
