#include "harness/program/run/supervise/again.hpp"

#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;

namespace {

/// Four cells of so many rounds, of which one was disturbed in some.
result::Result partly_disturbed(const std::vector<std::size_t>& rounds, std::size_t count = 3) {
  std::vector<result::CellRecord> cells;
  for (const char* label : {"softmax", "latte", "linear", "window"}) {
    test::CellBuilder cell(label);
    cell.length(256).rounds(std::vector<double>(label[1] == 'o' ? count : 3, 1.0));
    if (label[1] == 'o') cell.disturb(rounds).ended(Status::disturbed);
    cells.push_back(cell);
  }
  return test::result_of(cells);
}

const std::map<std::string, double> seconds{
    {"softmax", 1}, {"latte", 1}, {"linear", 1}, {"window", 1}};

}  // namespace

TEST_CASE("a disturbed cell gets a round more at a time, while that helps", "[again]") {
  run::Again again(3);
  const auto first = again(partly_disturbed({0, 1, 2}), seconds);
  REQUIRE(first);
  CHECK(first->cells == std::set<std::string>{"softmax"});
  CHECK(first->begin == 3);
  CHECK(first->end == 4);
  CHECK_FALSE(first->note.empty());
  const auto second = again(partly_disturbed({0, 1, 2}, 4), seconds);
  REQUIRE(second);
  CHECK(second->begin == 4);
  CHECK(second->note.empty());
  // The last round was disturbed as well; or there are no more.
  run::Again other = again;
  CHECK_FALSE(again(partly_disturbed({0, 1, 2, 4}, 5), seconds));
  CHECK_FALSE(other(partly_disturbed({0, 1, 2}, 6), seconds));
}

TEST_CASE("no rounds are added on a busy machine, to one round, or beyond half the time",
          "[again]") {
  CHECK_FALSE(run::Again(3)(partly_disturbed({}), {}));
  CHECK_FALSE(run::Again(0)(partly_disturbed({0, 1, 2}), seconds));
  CHECK_FALSE(run::Again(3)(partly_disturbed({0}, 1), seconds));
  result::Result busy = partly_disturbed({0, 1, 2});
  for (std::size_t i = 0; i < 2; ++i) {
    busy.cells[i].status = Status::disturbed;
    for (auto& round : busy.cells[i].timing["forward"].rounds) round.disturbed = true;
  }
  CHECK_FALSE(run::Again(3)(busy, seconds));
  // Three rounds took three seconds each, of which half is left for further ones.
  run::Again slow(3);
  const std::map<std::string, double> alone{{"softmax", 1}};
  CHECK(slow(partly_disturbed({0, 1, 2}), alone));
  CHECK_FALSE(slow(partly_disturbed({0, 1, 2}, 4), alone));
}
