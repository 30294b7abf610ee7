#include "harness/program/compare/gate.hpp"

#include <limits>

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using compare::Gate;

TEST_CASE("looks double until the most rounds", "[compare][ab]") {
  Gate gate;
  CHECK(compare::looks(gate) == std::vector<int>{12, 24, 48});
  gate.rounds_most = 30;
  CHECK(compare::looks(gate) == std::vector<int>{12, 24, 30});
  gate.rounds_most = 12;
  CHECK(compare::looks(gate) == std::vector<int>{12});
  gate.rounds = gate.rounds_most = std::numeric_limits<int>::max();
  CHECK(compare::looks(gate).size() == 1);
}

TEST_CASE("the error is shared by all pairs and looks", "[compare][ab]") {
  Gate gate;
  CHECK(compare::confidence_of_each(gate, 9) == Approx(1 - 0.05 / 27));
  gate.rounds_most = gate.rounds;
  CHECK(compare::confidence_of_each(gate, 4) == Approx(1 - 0.05 / 4));
  CHECK(compare::confidence_of_each(gate, 0) == Approx(0.95));
  // An interval over all of n rounds misses the median in 2 of 2^n cases.
  CHECK(compare::rounds_needed(0.95) == 6);
  CHECK(compare::rounds_needed(1 - 0.05 / 4) == 8);
}

TEST_CASE("a change counts beyond both bars", "[compare][ab]") {
  Gate gate;
  gate.absolute_seconds = 5e-5;
  CHECK(compare::bar_of(gate, 1e-2) == Approx(0.03));  // 0.3 ms is more than 50 us
  CHECK(compare::bar_of(gate, 1e-3) == Approx(0.05));  // 50 us are more than 30 us
  CHECK(compare::bar_of(gate, 0) == Approx(0.03));
}

TEST_CASE("a gate of which no verdict follows is refused", "[compare][ab]") {
  const auto refusal = [](auto Gate::*member, auto value) -> std::string {
    Gate gate;
    gate.*member = value;
    try {
      compare::validate(gate);
    } catch (const UsageFailure& failure) {
      return failure.what();
    }
    return "";
  };
  CHECK(refusal(&Gate::confidence, 0.9).empty());
  CHECK_THAT(refusal(&Gate::confidence, 1.0), Catch::Contains("between 0 and 1"));
  CHECK_THAT(refusal(&Gate::relative_change, -0.1), Catch::Contains("relative_change"));
  CHECK_THAT(refusal(&Gate::absolute_seconds, -1.0), Catch::Contains("absolute_seconds"));
  CHECK_THAT(refusal(&Gate::rounds_most, 8), Catch::Contains("fewer than the 12"));
  CHECK_THAT(refusal(&Gate::confirm, 5), Catch::Contains("6 rounds"));
  CHECK(refusal(&Gate::confirm, 0).empty());
}

TEST_CASE("a gate in JSON keeps what it does not say", "[compare][ab]") {
  const Gate gate = nlohmann::json::parse(R"({"relative_change": 0.1, "rounds": 7})").get<Gate>();
  CHECK(gate.relative_change == 0.1);
  CHECK(gate.rounds == 7);
  CHECK(gate.confirm == 24);
  CHECK(nlohmann::json(gate).get<Gate>() == gate);
}
