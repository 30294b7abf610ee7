#include "reports/training/latents.hpp"

#include "core/result/result_check.hpp"
#include "tests/reports/training/figure_rows.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using Json = nlohmann::json;
using test::result_of;
using test::text_cell;

namespace {

/// Three tokens, and three states or, with a window, four.
test::CellBuilder latent_cell(const std::string& label, int seed, bool window, double first = 0.5) {
  test::CellBuilder cell = text_cell(label, 0.003, seed, 2.2, 2.3, 2.5);
  std::vector<double> row{first, 0.25, 0.25};
  if (window) row = {first, 0.25, 0.125, 0.125};
  cell.training->latent_probabilities = result::LatentProbabilities{2,
                                                                    2,
                                                                    1,
                                                                    4,
                                                                    window ? 4 : 3,
                                                                    window ? "window" : "latent",
                                                                    {"\"", " ", "\\xc3"},
                                                                    {row, row, row},
                                                                    0.75,
                                                                    256,
                                                                    {}};
  return cell;
}

}  // namespace

TEST_CASE("states of a mixture over tokens are a map for each mechanism", "[latents]") {
  const auto figures = test::drawn(
      "latent_probabilities",
      result_of({text_cell("softmax", 0.003, 1, 2.1, 2.1, 5.0), latent_cell("latte", 1, false),
                 latent_cell("latte", 2, false, 0.9), latent_cell("macchiato", 1, true)}));
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
  const Json rows = spec["data"]["values"];
  REQUIRE(rows.size() == 9 + 12);  // of softmax none, of two seeds the first
  CHECK((rows[0]["series"] == "latte" && rows[0]["p"] == 0.5 && rows[0]["state"] == "0"));
  CHECK((rows[4]["x"] == 1 && rows[4]["y"] == 1 && rows[4]["token"] == "·"));
  CHECK(rows[4]["said"] == "0.250");
  CHECK((rows[9]["series"] == "macchiato" && rows[9]["state"] == "0, the window"));
  CHECK_THAT(figures[0].caption, Contains("State 0 of a mixture with a window is the window") &&
                                     Contains("half of the uniform"));
  // Without a window the caption speaks of none, without states there is no map.
  const auto latte =
      test::drawn("latent_probabilities", result_of({latent_cell("latte", 1, false)}));
  REQUIRE(latte.size() == 1);
  CHECK_THAT(latte[0].caption, !Contains("window"));
  CHECK(test::drawn("latent_probabilities",
                    result_of({text_cell("softmax", 0.003, 1, 2.1, 2.1, 5.0)}))
            .empty());
}

TEST_CASE("probabilities of states are checked as results are", "[latents]") {
  const Json whole = result_of({latent_cell("macchiato", 1, true)});
  CHECK_NOTHROW(result::check_form(whole, "here"));
  CHECK(Json(whole.get<result::Result>()) == whole);
  const auto refused = [&](const std::string& key, const Json& value) {
    Json spoiled = whole;
    spoiled["attnbench"]["cells"][0]["training"]["latent_probabilities"][key] = value;
    INFO(key);
    CHECK_THROWS_WITH(result::check_form(spoiled, "here"),
                      Contains("/latent_probabilities/" + key));
  };
  refused("probabilities", Json::array({{0.5, 0.5}}));
  refused("probabilities", {"a", "b", "c"});
  refused("tokens", {1, 2, 3});
  refused("in_use", 1.5);
  refused("first_state", "half");
  refused("heads", 0);
}
