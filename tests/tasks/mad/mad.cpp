#include "tests/support/catch.hpp"
#include "tests/tasks/run_cell.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;
using std::int64_t;

namespace {

Settings small_exercise(const std::string& exercise, const Settings& more = {}) {
  return with({{"exercise", exercise},
               {"batch", int64_t{8}},
               {"width", int64_t{16}},
               {"heads", int64_t{2}},
               {"mlp", std::string("gated")},
               {"norm", std::string("rms")},
               {"tied_head", false},
               {"train_examples", int64_t{20}},
               {"validation_examples", int64_t{8}},
               {"test_examples", int64_t{10}},
               {"epochs", int64_t{1}}},
              more);
}

tasks::TaskForecast forecast_of_exercise(const std::string& mechanism, const Settings& settings) {
  return tasks::find_task("mad").forecast(registry(),
                                          make_cell("mad", mechanism, "auto", settings));
}

}  // namespace

TEST_CASE("every exercise is trained and scored", "[mad]") {
  const std::map<std::string, std::pair<int, double>> known{
      {"in_context_recall", {128, 1.0 / 8}}, {"noisy_recall", {128, 1.0 / 8}},
      {"fuzzy_recall", {128, 1.0 / 8}},      {"selective_copying", {256, 1.0 / 14}},
      {"compression", {32, 1.0 / 15}},       {"memorization", {32, 1.0 / 128}}};
  for (const auto& [exercise, facts] : known) {
    INFO(exercise);
    const Ran ran =
        run_cell(registry(), "mad", make_cell("mad", "latte", "auto", small_exercise(exercise)));
    CHECK(ran.forecast.problem.length == facts.first);
    CHECK(ran.check["verdict"] == "ok");
    const Json& training = ran.sections["training"];
    CHECK(training["steps"] == 3);
    CHECK(training["chance"] == Approx(facts.second));
    CHECK(training["rules"]["length"] == facts.first);
    CHECK(training["test"][0]["segment"] == exercise);
    CHECK(ran.sections["metrics"]["label_accuracy"].get<double>() <= 1);
    CHECK(training["look_back"]["distances"].empty() == (exercise == "memorization"));
  }
}

TEST_CASE("a decoder's weights are learned and counted", "[mad]") {
  const auto parameters = [&](const std::string& exercise) {
    const Settings settings = small_exercise(exercise, {{"vocabulary", int64_t{16}}});
    const Ran ran = run_cell(registry(), "mad", make_cell("mad", "linear", "auto", settings));
    return ran.sections["training"]["parameters"]["total"].get<int>();
  };
  CHECK(parameters("compression") - parameters("selective_copying") == 2 * (16 * 16 + 16) + 3 * 16);
}

TEST_CASE("compression learns more than chance from one vector", "[mad]") {
  const Ran ran =
      run_cell(registry(), "mad",
               make_cell("mad", "softmax", "auto",
                         small_exercise("compression", {{"length", int64_t{5}},
                                                        {"vocabulary", int64_t{5}},
                                                        {"width", int64_t{32}},
                                                        {"positions", std::string("learned")},
                                                        {"learning_rate", 1e-2},
                                                        {"train_examples", int64_t{256}},
                                                        {"test_examples", int64_t{100}},
                                                        {"epochs", int64_t{25}}})));
  CHECK(ran.sections["metrics"]["accuracy"].get<double>() > 0.5);  // chance is 1/4
}

TEST_CASE("only compression may be bidirectional", "[mad]") {
  const Settings ahead{{"pattern", std::string("bidirectional")}};
  CHECK(forecast_of_exercise("perceiver", small_exercise("compression", ahead)).support);
  CHECK_THROWS_WITH(forecast_of_exercise("softmax", small_exercise("noisy_recall", ahead)),
                    Contains("answers"));
}

TEST_CASE("invalid exercises are refused before training", "[mad]") {
  CHECK_THROWS_WITH(forecast_of_exercise(
                        "softmax", small_exercise("in_context_recall", {{"length", int64_t{7}}})),
                    Contains("even"));
  CHECK_THROWS_WITH(
      forecast_of_exercise("softmax", small_exercise("fuzzy_recall", {{"motif", int64_t{9}}})),
      Contains("motif"));
  CHECK_THROWS_AS(make_cell("mad", "softmax", "auto", {{"exercise", std::string("recall")}}),
                  UsageError);
  CHECK_THROWS_AS(make_cell("mad", "softmax", "auto", {{"noise", 1.0}}), UsageError);
}
