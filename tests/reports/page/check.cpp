#include "reports/page/check.hpp"

#include "core/protocol.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using Json = nlohmann::json;

namespace {

Json property(const char* name, const char* status, double error, double tolerance,
              const char* reason = "") {
  return {{"name", name},
          {"status", status},
          {"error", error},
          {"tolerance", tolerance},
          {"reason", reason}};
}

Json row(const char* status, Json properties) {
  return {{"mechanism", "my_mix"}, {"implementation", "scan"},
          {"pattern", "causal"},   {"dtype", "float32"},
          {"status", status},      {"properties", std::move(properties)}};
}

}  // namespace

TEST_CASE("the report of a check tells what failed, what was left out, and why", "[reports]") {
  Json broken = row("wrong", {property("causality", "broken", 0.5, 0.001, "row 3 moved by 0.5"),
                              property("padding", "held", 1e-6, 1e-5)});
  Json left_out =
      row("ok",
          {{{"name", "cross"}, {"status", "not_applicable"}, {"reason", "it looks | back only"}}});
  const Json document = {
      {"verdict", "failed"},
      {"command", "attnbench check my_mix"},
      {"stamp", {{"attnbench", "0.1.0"}, {"torch", "1.13"}}},
      {"mechanisms",
       {{{"name", "my_mix"}, {"title", "Mine"}, {"claims", {{"linear_in_value", true}}}}}},
      {"checks", {broken, left_out}},
      {"growth",
       {{{"mechanism", "my_mix"},
         {"implementation", "scan"},
         {"quantity", "time in length"},
         {"claimed", 1},
         {"tolerance", 0.2},
         {"verdict", "differs"},
         {"measured", 1.9}},
        {{"mechanism", "my_mix"},
         {"implementation", "scan"},
         {"quantity", "workspace in length"},
         {"claimed", 1},
         {"tolerance", 0.2},
         {"verdict", "undecided"}}}}};
  const std::string page = reports::check_markdown(document);
  using Catch::Contains;
  CHECK_THAT(page, Catch::StartsWith("# attnbench check: failed\n"));
  CHECK_THAT(page, Contains("- my\\_mix/scan causal float32: **causality** row 3 moved by 0.5"));
  CHECK_THAT(page, Contains("| wrong | 1 | 1 | 0 | causality 0.5 of 0.001 |"));
  CHECK_THAT(page, Contains("| it looks \\| back only | cross |"));
  CHECK_THAT(page, Contains("| time in length | 1 | 0.2 | 1.9 | differs |"));
  CHECK_THAT(page, Contains("| workspace in length | 1 | 0.2 | not measured | undecided |"));
  CHECK_THAT(page, Contains("- claims: linear\\_in\\_value"));
  CHECK_THAT(page, !Contains("processor"));
}

TEST_CASE("the report of a check names the machine, and the card where it ran on one",
          "[reports]") {
  Json document = {
      {"machine", {{"host", "node_7"}, {"cpu_model", "a processor"}, {"os", "a system"}}}};
  const std::string here = reports::check_markdown(document);
  CHECK_THAT(here, Catch::Contains("- processor: a processor\n- machine: node\\_7\n"
                                   "- system: a system\n"));
  CHECK_THAT(here, !Catch::Contains("- device"));
  document["machine"]["devices"]["cuda:1"] = {
      {"name", "a card"}, {"compute_capability", "9.0"}, {"driver", "580.1"}};
  CHECK_THAT(reports::check_markdown(document),
             Catch::Contains("- device: a card (cuda:1), compute capability 9.0, driver 580.1\n"));
}

TEST_CASE("a row that crashed is told with its reason", "[reports]") {
  Json crashed = row("crashed", Json::array());
  crashed["reason"] = "the process was killed by signal 11";
  const std::string page = reports::check_markdown({{"checks", {crashed}}});
  CHECK_THAT(page, Catch::Contains("crashed, the process was killed by signal 11"));
  CHECK(crashed.get<protocol::CheckedRow>().closest_to_tolerance() == nullptr);
}
