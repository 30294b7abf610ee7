#include "harness/program/run/check/checking.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::run;

namespace {

Catalogue catalogue() {
  MechanismSpec softmax, window;
  softmax.name = "softmax";
  softmax.patterns = {"bidirectional", "causal", "cross"};
  softmax.implementations = {{"composite", "", {}, true}, {"tiled", "", {}, true}};
  softmax.aliases = {{"flash", "softmax", "tiled", {}, ""},
                     {"standard", "softmax", "auto", {}, ""}};
  window.name = "window";
  window.patterns = {"causal"};
  Option keys;
  keys.name = "window";
  keys.type = OptionType::window;
  window.options = {keys};
  window.implementations = {{"composite", "", {}, true}};
  Catalogue out;
  out.mechanisms = {softmax, window};
  return out;
}

std::size_t count(const CheckChoices& choices) { return check_rows(catalogue(), choices).size(); }

}  // namespace

TEST_CASE("check takes every implementation, pattern and dtype unless told otherwise",
          "[checking]") {
  CHECK(count({}) == (2 * 3 + 1) * 3);
  CheckChoices choices;
  choices.dtypes = {"float32"};
  CHECK(count(choices) == 7);
  choices.pattern = "causal";
  CHECK(count(choices) == 3);
  choices.implementation = "tiled";
  CHECK(count(choices) == 1);
}

TEST_CASE("an alias stands for its mechanism and implementation", "[checking]") {
  CheckChoices choices;
  choices.mechanisms = {"flash"};
  choices.dtypes = {"float32"};
  const auto rows = check_rows(catalogue(), choices);
  REQUIRE(rows.size() == 3);
  CHECK(rows.front().mechanism == "flash");
  CHECK(rows.front().entry == "softmax");
  CHECK(rows.front().implementation == "tiled");
  choices.mechanisms = {"standard"};
  CHECK(count(choices) == 6);
}

TEST_CASE("words that are not known are refused with the nearest one", "[checking]") {
  CheckChoices choices;
  choices.mechanisms = {"sofmax"};
  CHECK_THROWS_WITH(count(choices), Catch::Contains("\"softmax\""));
  choices = {};
  choices.implementation = "tield";
  CHECK_THROWS_WITH(count(choices), Catch::Contains("\"tiled\""));
  choices = {};
  choices.dtypes = {"float23"};
  CHECK_THROWS_AS(count(choices), UsageFailure);
  choices = {};
  choices.pattern = "casual";
  CHECK_THROWS_WITH(count(choices), Catch::Contains("\"causal\""));
}

TEST_CASE("an option is set for every mechanism that is named", "[checking]") {
  CheckChoices choices;
  choices.mechanisms = {"window"};
  choices.options = {"window=6"};
  for (const CheckRow& row : check_rows(catalogue(), choices)) {
    const auto window = std::get<Window>(row.options.at("window"));
    CHECK(window.left == 5);
    CHECK(window.right == 0);
    Json asked;
    const Ask answers = [&](const Json& request) -> Json {
      asked = request;
      return {{"status", "error"}, {"reason", "none"}};
    };
    check_row(answers, row, 30);
    CHECK(asked.at("options").at("window").at("left") == window.left);
  }
  choices.options = {"window=6,7"};
  CHECK_THROWS_WITH(count(choices), Catch::Contains("one value"));
  choices.options = {"windw=6"};
  CHECK_THROWS_WITH(count(choices), Catch::Contains("\"window\""));
  choices.mechanisms = {"softmax", "window"};
  choices.options = {"window=6"};
  CHECK_THROWS_WITH(count(choices), Catch::Contains("softmax has no option"));
  choices.mechanisms = {};
  CHECK_THROWS_WITH(count(choices), Catch::Contains("name the mechanisms"));
}

TEST_CASE("a choice that leaves nothing is an error", "[checking]") {
  CheckChoices choices;
  choices.mechanisms = {"window"};
  choices.implementation = "tiled";
  CHECK_THROWS_AS(count(choices), UsageFailure);
}

TEST_CASE("a row is counted, asked for in one child, and a crash is its failure alone",
          "[checking]") {
  const CheckRow row{"flash", "softmax", "tiled", "causal", "float32"};
  Json asked;
  const Ask answers = [&](const Json& request) -> Json {
    asked = request;
    return {{"type", "check"},
            {"status", "wrong"},
            {"reason", "causality: it leaks"},
            {"properties",
             {{{"name", "causality"}, {"status", "broken"}},
              {{"name", "padding"}, {"status", "held"}},
              {{"name", "cross"}, {"status", "not_applicable"}},
              {{"name", "last_row"}, {"status", "held"}}}}};
  };
  const protocol::CheckedRow checked = check_row(answers, row, 30);
  CHECK(asked.at("type") == "check");
  CHECK(asked.at("dtypes") == Json({"float32"}));
  CHECK(asked.at("limits").at("seconds") == 30);
  const Json written = checked;
  CHECK(written.at("held") == 2);
  CHECK(written.at("broken") == 1);
  CHECK(written.at("not_applicable") == 1);
  CHECK(written.at("dtype") == "float32");
  CHECK(checked.failed());

  const Ask crashes = [](const Json&) -> Json {
    return {{"status", "crashed"}, {"reason", "signal 11 (SIGSEGV)"}};
  };
  protocol::CheckedRow crashed = check_row(crashes, row, 30);
  CHECK(crashed.failed());
  CHECK(crashed.mechanism == "flash");
  CHECK(Json(crashed).at("properties").empty());
  for (const Status status : {Status::unsupported, Status::ok}) {
    crashed.status = status;
    CHECK_FALSE(crashed.failed());
  }
}
