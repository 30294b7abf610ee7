#include "reports/training/latents.hpp"

#include "core/schema/result_check.hpp"
#include "tests/reports/training/some_trainings.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using namespace attnbench::test;
using Catch::Matchers::Contains;

namespace {

/// Three tokens, and three states or, with a window, four.
Json latent_cell(const std::string& label, int seed, bool window, double first = 0.5) {
  Json cell = text_cell(label, 0.003, seed, 2.2, 2.3, 2.5);
  const Json row = window ? Json({first, 0.25, 0.125, 0.125}) : Json({first, 0.25, 0.25});
  cell["training"]["latent_probabilities"] = {{"block", 2},
                                              {"blocks", 2},
                                              {"head", 1},
                                              {"heads", 4},
                                              {"states", window ? 4 : 3},
                                              {"first_state", window ? "window" : "latent"},
                                              {"tokens", {"\"", " ", "\\xc3"}},
                                              {"probabilities", {row, row, row}},
                                              {"in_use", 0.75},
                                              {"length", 256}};
  return cell;
}

}  // namespace

TEST_CASE("states of a mixture over tokens are a map for each mechanism", "[latents]") {
  const Json result = language_models(
      {text_cell("softmax", 0.003, 1, 2.1, 2.1, 5.0), latent_cell("latte", 1, false),
       latent_cell("latte", 2, false, 0.9), latent_cell("macchiato", 1, true)});
  const auto figures = reports::draw("latent_probabilities", test::panels(result).at(0), order, {});
  REQUIRE(figures.size() == 1);
  const Json& spec = figures[0].spec;
  CHECK(figures[0].name == "lm_latent_probabilities");
  CHECK_FALSE(figures[0].subtitle.empty());
  CHECK_FALSE(spec.contains("layer"));
  CHECK(spec["facet"]["sort"] ==
        Json({"latte: 0.750 of 24 states in use", "macchiato: 0.750 of 32 states in use"}));
  const Json& unit = spec["spec"];
  CHECK(unit["encoding"]["color"]["scale"]["domain"] == Json({0.0, 0.5}));
  CHECK(unit["encoding"]["x"]["axis"]["labelExpr"] == R"(["\"","·","\\xc3"][datum.value])");
  CHECK(unit["encoding"]["y"]["title"] == "state l");
  const Json rows = spec["data"]["values"];
  REQUIRE(rows.size() == 9 + 12);  // of softmax none, of two seeds the first
  CHECK(rows[0]["series"] == "latte");
  CHECK(rows[0]["p"] == 0.5);
  CHECK(rows[0]["state"] == "0");
  CHECK(rows[4]["x"] == 1);
  CHECK(rows[4]["y"] == 1);
  CHECK(rows[4]["token"] == "·");
  CHECK(rows[4]["said"] == "0.250");
  CHECK(rows[9]["series"] == "macchiato");
  CHECK(rows[9]["state"] == "0, the window");
  CHECK_THAT(figures[0].caption, Contains("State 0 of a mixture with a window is the window") &&
                                     Contains("half of the uniform"));
}

TEST_CASE("without a window the caption speaks of none, without states there is no map",
          "[latents]") {
  const Json latte = language_models({latent_cell("latte", 1, false)});
  const auto figures = reports::draw("latent_probabilities", test::panels(latte).at(0), order, {});
  REQUIRE(figures.size() == 1);
  CHECK_THAT(figures[0].caption, !Contains("window"));
  const Json others = language_models({text_cell("softmax", 0.003, 1, 2.1, 2.1, 5.0)});
  CHECK(reports::draw("latent_probabilities", test::panels(others).at(0), order, {}).empty());
}

TEST_CASE("probabilities of states are read, written and checked as results are", "[latents]") {
  const Json cell = latent_cell("macchiato", 1, true);
  const Json& stored = cell["training"]["latent_probabilities"];
  const auto typed = stored.get<result::LatentProbabilities>();
  CHECK(typed.probabilities.at(2).at(0) == 0.5);
  CHECK(Json(typed) == stored);
  const Json old = text_cell("latte", 0.003, 1, 2.2, 2.3, 2.5)["training"];
  CHECK_FALSE(old.get<result::Training>().latent_probabilities.has_value());
  CHECK_FALSE(Json(old.get<result::Training>()).contains("latent_probabilities"));

  CHECK_NOTHROW(result::check_form(language_models({cell}), "here"));
  const auto refused = [&](const char* key, const Json& value, const char* pointer) {
    Json spoiled = cell;
    spoiled["training"]["latent_probabilities"][key] = value;
    INFO(key);
    CHECK_THROWS_WITH(result::check_form(language_models({spoiled}), "here"), Contains(pointer));
  };
  refused("probabilities", Json::array({{0.5, 0.5}}), "/latent_probabilities/probabilities");
  refused("probabilities", {"a", "b", "c"}, "/latent_probabilities/probabilities");
  refused("tokens", {1, 2, 3}, "/latent_probabilities/tokens");
  refused("in_use", 1.5, "/latent_probabilities/in_use");
  refused("first_state", "half", "/latent_probabilities/first_state");
  refused("heads", 0, "/latent_probabilities/heads");
}
