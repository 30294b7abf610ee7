// Figures and verdict of language models: bits per byte, of which less is better.
#include "reports/figures/figure.hpp"
#include "reports/training/accuracy.hpp"
#include "reports/training/rows.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/sentences.hpp"
#include "tests/reports/training/some_trainings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

Json two_models() {
  return language_models(
      {text_cell("softmax", 0.001, 1, 2.3, 2.3, 5.5), text_cell("softmax", 0.003, 1, 2.2, 2.2, 6.0),
       text_cell("softmax", 0.003, 2, 2.2, 2.4, 6.0), text_cell("latte", 0.003, 1, 2.5, 2.5, 2.4),
       text_cell("latte", 0.003, 2, 2.5, 2.6, 2.5)});
}

}  // namespace

TEST_CASE("figures of language models have bits, levels and no accuracy", "[training]") {
  const Json result = two_models();
  const auto panel = test::panels(result).at(0);
  for (const char* name : {"bits_per_byte", "bits_per_byte_over_steps", "bits_per_byte_over_length",
                           "bits_per_byte_over_state", "bits_per_byte_over_learning_rate"}) {
    INFO(name);
    const auto figures = reports::draw(name, panel, order, {});
    REQUIRE(figures.size() == 1);
    CHECK_THAT(figures[0].name, Contains(name));
    const std::string words = figures[0].title + figures[0].caption + figures[0].spec.dump();
    CHECK_THAT(words, !Contains("ccuracy on"));
    CHECK_THAT(words, !Contains("validation accuracy"));
  }
  const auto figure = reports::accuracy_figure(panel, order, {});
  REQUIRE(figure.has_value());
  CHECK(rows_of(*figure, "dot").size() == 4);
  CHECK(rows_of(*figure, "dot")[0]["y"] == 2.2);
  // Of the levels those far above the dots are left out, and the last is always there.
  CHECK_THAT(figure->spec.dump(),
             Contains("counts after two bytes") && !Contains("counts of bytes"));
  CHECK_THAT(figure->caption, Contains("least mean validation loss"));
}

TEST_CASE("bits per byte over the length of a sequence, each seed and the mean", "[training]") {
  const Json result = two_models();
  const auto figure = reports::bits_over_length_figure(test::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  const auto means = rows_of(*figure, "mean");
  REQUIRE(means.size() == 4);
  CHECK(means[0]["x"] == 256);
  CHECK(means[0]["y"].get<double>() == Approx(2.3));
  CHECK(means[1]["x"] == 512);
  CHECK(means[1]["y"].get<double>() == Approx(6));
  CHECK(rows_of(*figure, "dot").size() == 8);
  CHECK(figure->spec["encoding"]["x"]["scale"]["base"] == 2);
  // Trainings that are judged by accuracy have no such figure.
  const Json others = some_trainings();
  CHECK_FALSE(reports::bits_over_length_figure(test::panels(others).at(0), order).has_value());
  CHECK_FALSE(reports::bits_over_steps_figure(test::panels(others).at(0), order).has_value());
}

TEST_CASE("bits over steps are those of the validation", "[training]") {
  const Json result = two_models();
  const auto figure = reports::bits_over_steps_figure(test::panels(result).at(0), order);
  REQUIRE(figure.has_value());
  const auto dots = rows_of(*figure, "dot");
  REQUIRE(dots.size() == 16);
  CHECK(dots[0]["x"] == 10);
  CHECK(dots[0]["y"].get<double>() == Approx(2.2 + 0.75));
  CHECK(dots[3]["y"].get<double>() == Approx(2.2));
}

TEST_CASE("the front of bits per byte falls with the cost", "[training]") {
  reports::TrainingRows rows;
  const Json result = two_models();
  const auto& quality = result::quality_of(test::panels(result).at(0));
  reports::add_front(rows, {{4, 2.0}, {1, 3.0}, {2, 3.5}, {3, 2.5}}, quality);
  REQUIRE(rows.size() == 3);
  CHECK(rows[0].y == 3.0);
  CHECK(rows[1].y == 2.5);
  CHECK(rows[2].y == 2.0);
}

TEST_CASE("the verdict of language models ranks the fewest bits first", "[verdict]") {
  const Json stored = two_models();
  const auto typed = stored.get<result::Result>();
  const auto verdict = reports::verdict::verdict_of(typed);
  REQUIRE(verdict.answers.size() == 1);
  REQUIRE(verdict.answers[0].accuracies.size() == 2);
  CHECK(verdict.answers[0].accuracies[0].label == "softmax");
  CHECK(verdict.answers[0].most_accurate == std::vector<std::string>{"softmax"});
  const std::string text = reports::verdict::text_of(verdict, 100);
  CHECK_THAT(text, Contains("bits per byte (state): softmax 2.300") &&
                       Contains("fewest bits per byte: softmax") &&
                       Contains("after training the bits per byte"));
  CHECK_THAT(text, !Contains("accura"));
}
