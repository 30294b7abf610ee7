#include "harness/program/run/supervise/budget.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using Catch::Contains;

namespace {

constexpr double plenty = 1e6;  // seconds

/// A cell of so many rounds, whose medians lie within `spread` of `seconds`.
result::CellRecord cell(const std::string& label, double seconds, std::size_t count,
                        double spread) {
  test::CellBuilder one(label);
  std::vector<double> rounds;
  for (std::size_t i = 0; i < count; ++i) {
    const double sign = i % 3 == 0 ? 0 : i % 3 == 1 ? 1 : -1;
    rounds.push_back(seconds * (1 + sign * spread));
  }
  one.length(256).took(seconds, "forward", spread).rounds(rounds);
  one.timing.at("forward").interval = "range";
  return one;
}

/// Softmax and latte are alike, window is much slower.
result::Result alike(std::size_t softmax, std::size_t latte, std::size_t window,
                     double spread = 0.2) {
  return test::result_of({cell("softmax", 1, softmax, spread), cell("latte", 1.01, latte, spread),
                          cell("window", 50, window, spread)});
}

const std::map<std::string, double> seconds_of_three{{"softmax", 1}, {"latte", 1}, {"window", 50}};

using Cells = std::set<std::string>;

}  // namespace

TEST_CASE("a budget is read in seconds, minutes and hours", "[budget]") {
  CHECK(run::seconds_from("--budget", "90") == 90);
  CHECK(run::seconds_from("--budget", "60s") == 60);
  CHECK(run::seconds_from("--budget", "2m") == 120);
  CHECK(run::seconds_from("--budget", "1.5h") == 5400);
  for (const char* wrong : {"", "s", "0", "-3", "3x", "3 s", "nan", "inf", "1e300", "5mm"}) {
    INFO(wrong);
    CHECK_THROWS_WITH(run::seconds_from("--budget", wrong), Contains("60s, 2m or 1.5h"));
  }
}

TEST_CASE("all cells get the rounds that rank, then those of undecided statements", "[budget]") {
  const run::Budget budget(plenty);
  const auto second = budget(alike(1, 1, 1), seconds_of_three);
  REQUIRE(second);
  CHECK(second->cells == Cells{"softmax", "latte", "window"});
  CHECK(second->begin == 1);
  CHECK(second->end == 2);
  const auto further = budget(alike(3, 3, 3), seconds_of_three);
  REQUIRE(further);
  CHECK(further->cells == Cells{"softmax", "latte"});
  CHECK(further->begin == 3);
  // One that is behind catches up first.
  const auto behind = budget(alike(5, 4, 3), seconds_of_three);
  REQUIRE(behind);
  CHECK(behind->cells == Cells{"latte"});
  CHECK(behind->begin == 4);
}

TEST_CASE("a budget ends where all is decided, the time is up, or rounds are many", "[budget]") {
  const run::Budget budget(plenty);
  CHECK_FALSE(budget(alike(3, 3, 3, 0.0005), seconds_of_three));
  constexpr auto most = static_cast<std::size_t>(run::Budget::most_rounds);
  CHECK_FALSE(budget(alike(most, most, 3), seconds_of_three));
  const run::Budget short_one(10);
  CHECK_FALSE(short_one(alike(1, 1, 1), seconds_of_three));  // a round of all takes 52 s
  CHECK(short_one(alike(3, 3, 3), seconds_of_three));
  CHECK_FALSE(run::Budget(1)(alike(3, 3, 3), seconds_of_three));
}

TEST_CASE("of statements that do not all fit, the cheapest come first", "[budget]") {
  result::Result two = alike(3, 3, 3);
  for (const auto& [label, length] :
       {std::pair("softmax", "long softmax"), {"latte", "long latte"}}) {
    test::CellBuilder one("");
    static_cast<result::CellRecord&>(one) = cell(label, 1, 3, 0.2);
    two.cells.push_back(one.named(length).length(4096));
  }
  std::map<std::string, double> own = seconds_of_three;
  own["long softmax"] = own["long latte"] = 30;
  const auto all = run::Budget(plenty)(two, own);
  REQUIRE(all);
  CHECK(all->cells.size() == 4);
  const auto some = run::Budget(20)(two, own);
  REQUIRE(some);
  CHECK(some->cells == Cells{"softmax", "latte"});
}

TEST_CASE("the end says what the budget left undecided", "[budget]") {
  CHECK_THAT(run::budget_text(alike(1, 1, 1), 60), Contains("before each cell had its 3 rounds"));
  const std::string open = run::budget_text(alike(3, 3, 3), 60);
  CHECK_THAT(open, Contains("Not decided within the budget of 60 s:"));
  CHECK_THAT(open, Contains("which of softmax and latte is fastest at length 256"));
  CHECK_THAT(run::budget_text(alike(3, 3, 3, 0.0005), 60),
             Contains("Nothing that is measured is left undecided"));
}
