#include "reports/training/confusion.hpp"

#include "tests/reports/training/figure_rows.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Catch::Matchers::Contains;
using Json = nlohmann::json;
using test::class_cell;
using test::result_of;

TEST_CASE("what each class was taken for is a map for each mechanism", "[confusion]") {
  auto first = class_cell("latte", 1, 0.6, 0.8);
  first.training->confusion = {{30, 10}, {0, 20}};
  auto second = class_cell("latte", 2, 0.6, 0.8);
  second.training->confusion = {{20, 20}, {5, 15}};
  const auto figures =
      test::drawn("confusion", result_of({class_cell("softmax", 1, 0.6, 0.8), first, second}));
  REQUIRE(figures.size() == 1);
  const Json& spec = figures[0].spec;
  CHECK(spec["facet"]["sort"] == Json({"softmax", "latte"}));
  CHECK(spec["spec"]["layer"].size() == 2);
  CHECK_FALSE(spec.contains("layer"));
  const Json rows = spec["data"]["values"];
  REQUIRE(rows.size() == 8);
  // The seeds together: 50 of the 80 of class 0 are right, 5 of the 40 of class 1 are not.
  CHECK(rows[4]["series"] == "latte");
  CHECK(rows[4]["share"].get<double>() == Approx(50.0 / 80));
  CHECK((rows[6]["y"] == 1 && rows[6]["x"] == 0 && rows[6]["count"] == "5"));
  CHECK(rows[6]["share"].get<double>() == Approx(5.0 / 40));
  CHECK(test::drawn("confusion", test::some_trainings()).empty());
}

TEST_CASE("accuracies of classes stand above the most frequent one, beside published ones",
          "[confusion]") {
  const auto result = result_of({class_cell("latte", 1, 0.6, 0.8)});
  const auto figures = test::drawn("accuracy", result);
  REQUIRE(figures.size() == 1);
  CHECK_THAT(figures[0].spec.dump(),
             Contains("the most frequent class") && !Contains("guessing among") &&
                 !Contains(R"("what":"chance")"));  // the same line but for 0.02
  CHECK_THAT(figures[0].caption, Contains("the weights of the best validation"));

  const auto beside = test::drawn(
      "accuracy", result,
      test::published_in(
          "# source: A paper, Table 2\nlabel,task,length,accuracy\n"
          "latte,mqar,64,0.4\nluna,mqar,64,0.3\nlatte,mqar,128,0.2\nlatte,other,64,0.1\n"));
  REQUIRE(beside.size() == 1);
  Json published;
  for (const Json& layer : beside[0].spec["layer"]) {
    if (layer.contains("data") && layer["data"].value("name", "") == "published") {
      published = layer["data"]["values"];
    }
  }
  REQUIRE(published.size() == 2);
  CHECK((published[0]["x"] == "latte" && published[0]["y"] == 0.4));
  CHECK(published[1]["x"] == "luna (published)");
  CHECK(beside[0].spec["encoding"]["x"]["sort"] == Json({"latte", "luna (published)"}));
  CHECK_THAT(beside[0].caption, Contains("Hollow: published numbers of A paper, Table 2"));
}
