#include "core/result/training.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench;
using result::Ending;

namespace {

/// A training that stands still, whose evaluations of `examples` had these accuracies.
result::Training still(const std::vector<double>& accuracies, double chance,
                       std::int64_t examples = 0) {
  result::Training training;
  for (const double one : accuracies) training.curve.emplace_back().validation_accuracy = one;
  training.converged = true;
  training.chance = chance;
  if (examples > 0) training.validation.push_back({"all", examples, {}});
  return training;
}

}  // namespace

TEST_CASE("a training that never left chance has not converged", "[training]") {
  CHECK(ending_of(still({0.006, 0.009, 0.008, 0.009}, 1.0 / 256)) == Ending::at_chance);
  CHECK(ending_of(still({0.006, 0.02, 0.019, 0.02}, 1.0 / 256)) == Ending::converged);
  // Once is enough: what it lost again, it had learned.
  CHECK(ending_of(still({0.006, 0.3, 0.006, 0.006}, 1.0 / 256)) == Ending::converged);
  result::Training growing = still({0.1, 0.2, 0.3, 0.4}, 1.0 / 256);
  growing.converged = false;
  CHECK(ending_of(growing) == Ending::still_learning);
  growing.curve.resize(1);
  growing.curve.front().validation_accuracy = 0.01;
  CHECK(ending_of(growing) == Ending::at_chance);
}

TEST_CASE("chance has the noise of a validation's size", "[training]") {
  // Three standard deviations of 100 coins are 0.15, of 10,000 they are 0.015.
  CHECK(ending_of(still({0.5, 0.6, 0.64, 0.6}, 0.5, 100)) == Ending::at_chance);
  CHECK(ending_of(still({0.5, 0.6, 0.66, 0.6}, 0.5, 100)) == Ending::converged);
  CHECK(ending_of(still({0.5, 0.514, 0.51, 0.51}, 0.5, 10'000)) == Ending::at_chance);
  CHECK(ending_of(still({0.5, 0.516, 0.51, 0.51}, 0.5, 10'000)) == Ending::converged);
}

TEST_CASE("the most frequent class is no learning, the values of a sequence are", "[training]") {
  result::Training classes = still({0.8, 0.8, 0.8, 0.8}, 0.5);
  classes.guess = 0.8;
  CHECK(ending_of(classes) == Ending::converged);
  classes.confusion = {{8, 0}, {2, 0}};
  CHECK(ending_of(classes) == Ending::at_chance);
}

TEST_CASE("what has no chance to compare with ends as it says", "[training]") {
  result::Training training = still({0.001}, 0.5);
  training.chance.reset();
  CHECK(ending_of(training) == Ending::converged);
  training = still({0.001}, 0.5);
  training.judged_by = "loss";
  CHECK(ending_of(training) == Ending::converged);
  training = still({}, 0.5);
  CHECK(ending_of(training) == Ending::converged);
  training.converged.reset();
  CHECK(ending_of(training) == Ending::still_learning);
}
