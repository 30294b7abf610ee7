// Figures and verdict of language models: bits per byte, of which less is better.
#include <cmath>

#include "reports/figures/published.hpp"
#include "reports/training/rows.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/ranking.hpp"
#include "reports/verdict/sentences.hpp"
#include "tests/reports/training/figure_rows.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using test::rows_of;
using test::text_cell;

namespace {

result::Result two_models() {
  return test::result_of(
      {text_cell("softmax", 0.001, 1, 2.3, 2.3, 5.5), text_cell("softmax", 0.003, 1, 2.2, 2.2, 6.0),
       text_cell("softmax", 0.003, 2, 2.2, 2.4, 6.0), text_cell("latte", 0.003, 1, 2.5, 2.5, 2.4),
       text_cell("latte", 0.003, 2, 2.5, 2.6, 2.5)});
}

}  // namespace

TEST_CASE("figures of language models have bits, levels and no accuracy", "[training]") {
  std::map<std::string, reports::Figure> figures;
  for (const char* name : {"bits_per_byte", "bits_per_byte_over_steps", "bits_per_byte_over_length",
                           "bits_per_byte_over_state", "bits_per_byte_over_learning_rate"}) {
    INFO(name);
    const auto drawn = test::drawn(name, two_models());
    REQUIRE(drawn.size() == 1);
    CHECK_THAT(drawn[0].name, Contains(name));
    CHECK_THAT(drawn[0].title + drawn[0].caption + drawn[0].spec.dump(),
               !Contains("ccuracy on") && !Contains("validation accuracy"));
    figures[name] = drawn[0];
  }
  const reports::Figure& chosen = figures["bits_per_byte"];
  CHECK(rows_of(chosen, "dot").size() == 4);
  CHECK(rows_of(chosen, "dot")[0]["y"] == 2.2);
  // Levels far above the dots are left out, and the last is always there.
  CHECK_THAT(chosen.spec.dump(),
             Contains("counts after two bytes") && !Contains("counts of bytes"));
  CHECK_THAT(chosen.caption, Contains("least mean validation loss"));

  const reports::Figure& over_length = figures["bits_per_byte_over_length"];
  const auto means = rows_of(over_length, "mean");
  REQUIRE(means.size() == 4);
  CHECK(means[0]["x"] == 256);
  CHECK(means[0]["y"].get<double>() == Approx(2.3));
  CHECK(means[1]["x"] == 512);
  CHECK(means[1]["y"].get<double>() == Approx(6));
  CHECK(rows_of(over_length, "dot").size() == 8);
  CHECK(over_length.spec["encoding"]["x"]["scale"]["base"] == 2);

  const auto dots = rows_of(figures["bits_per_byte_over_steps"], "dot");  // of the validation
  REQUIRE(dots.size() == 16);
  CHECK(dots[0]["x"] == 10);
  CHECK(dots[0]["y"].get<double>() == Approx(2.2 + 0.75));
  CHECK(dots[3]["y"].get<double>() == Approx(2.2));
  // Trainings that are judged by accuracy have no such figures.
  CHECK(test::drawn("bits_per_byte_over_length", test::some_trainings()).empty());
  CHECK(test::drawn("bits_per_byte_over_steps", test::some_trainings()).empty());
}

TEST_CASE("the front of bits per byte falls with the cost", "[training]") {
  reports::TrainingRows rows;
  const auto& quality = reports::quality_of(test::first_panel(two_models()));
  reports::add_front(rows, {{"d", 4, 2.0}, {"a", 1, 3.0}, {"b", 2, 3.5}, {"c", 3, 2.5}}, quality);
  REQUIRE(rows.size() == 3);
  CHECK((rows[0].y == 3.0 && rows[1].y == 2.5 && rows[2].y == 2.0));
}

TEST_CASE("the verdict of language models ranks the fewest bits first", "[verdict]") {
  const auto verdict = reports::verdict::verdict_of(two_models());
  REQUIRE(verdict.answers.size() == 1);
  REQUIRE(verdict.answers[0].accuracies.size() == 2);
  CHECK(verdict.answers[0].accuracies[0].label == "softmax");
  CHECK(verdict.answers[0].max_accurate == std::vector<std::string>{"softmax"});
  CHECK(reports::verdict::headline_of(verdict) == "softmax has the fewest bits per byte: 2.300");
  CHECK_THAT(reports::verdict::text_of(verdict, {}), !Contains("accura"));
}

TEST_CASE("where tokens are no bytes, figures and verdict have perplexities", "[training]") {
  const result::Result result = test::result_of({test::token_cell("softmax", 0.003, 1, 3, 4, 5),
                                                 test::token_cell("softmax", 0.001, 1, 3.5, 3.5, 5),
                                                 test::token_cell("latte", 0.003, 1, 3, 5, 6)});
  for (const char* name : {"bits_per_byte", "bits_per_byte_over_steps", "bits_per_byte_over_length",
                           "bits_per_byte_over_learning_rate"}) {
    INFO(name);
    const auto drawn = test::drawn(name, result);
    REQUIRE(drawn.size() == 1);
    CHECK_THAT(drawn[0].title + drawn[0].caption + drawn[0].spec.dump(),
               Contains("erplexity") && !Contains("its per byte\"") && !Contains("counts of"));
  }
  CHECK(rows_of(test::drawn("bits_per_byte", result)[0], "dot")[0]["y"].get<double>() ==
        Approx(16));
  const auto lengths = rows_of(test::drawn("bits_per_byte_over_length", result)[0], "dot");
  CHECK(lengths[0]["y"].get<double>() == Approx(16));
  CHECK(lengths[1]["y"].get<double>() == Approx(32));
  const auto steps = rows_of(test::drawn("bits_per_byte_over_steps", result)[0], "dot");
  CHECK(steps[0]["y"].get<double>() == Approx(std::exp2(3.75)));
  CHECK_THAT(test::drawn("learning_curves", result)[0].spec.dump(),
             Contains("next tokens predicted"));
  CHECK_THAT(reports::verdict::headline_of(reports::verdict::verdict_of(result)),
             Contains("The perplexities, from 16.000 (softmax) to 32.000 (latte)"));
}

TEST_CASE("published perplexities stand beside perplexities alone", "[training]") {
  reports::PublishedRow row;
  row.label = "softmax";
  row.perplexity = 17.2;
  const auto shown = [&](const result::Result& result) {
    return reports::published_accuracies({row}, test::first_panel(result), "").size();
  };
  CHECK(shown(test::result_of({test::token_cell("softmax", 0.003, 1, 3, 4, 5)})) == 1);
  CHECK(shown(two_models()) == 0);
}
