#include "core/schema/round_check.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::result;
using Catch::Matchers::Contains;

namespace {

Json timed() {
  return {{"type", "record"},
          {"cell", "a"},
          {"round", 0},
          {"status", "ok"},
          {"started_at", "2026-01-31T12:00:00Z"},
          {"wall_seconds", 0.5},
          {"measured",
           {{"timing",
             {{"forward",
               {{"samples_seconds", {1.0, 2.0, 3.0}},
                {"median_seconds", 2.0},
                {"low_seconds", 1.0},
                {"high_seconds", 3.0},
                {"stop", "interval"},
                {"calibration_seconds", 0.1}}}}},
            {"memory", {{"output_bytes", 64}}},
            {"metrics", {{"tokens_per_second", 7.5}}},
            {"check", {{"verdict", "ok"}, {"rows", 32}}}}}};
}

/// The record with `value` at `pointer`.
Json with(const char* pointer, const Json& value) {
  Json record = timed();
  record[Json::json_pointer(pointer)] = value;
  return record;
}

Json nested(int depth) {
  Json value = 1;
  for (int i = 0; i < depth; ++i) value = Json::array({value});
  return value;
}

const char* const forward = "/measured/timing/forward";

}  // namespace

TEST_CASE("a record of a round is taken as it is", "[round_form]") {
  CHECK(round_fault(timed()) == "");
  CHECK(round_fault({{"cell", "a"}, {"round", 3}, {"status", "timeout"}, {"reason", "late"}}) ==
        "");
  CHECK(round_fault(with("/measured/training", {{"curve", {{{"loss", 1.5}}}}})) == "");
  CHECK(round_fault(with("/measured/timing/forward/clock_ratio", 0.9)) == "");
}

TEST_CASE("a record that is none names the key and what it expects there", "[round_form]") {
  const std::string where = forward;
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<std::tuple<std::string, Json, std::string>> faults{
      {"/status", "marvellous", "status: expected a status"},
      {"/status", 3, "status: expected a status"},
      {"/cell", "", "cell: expected an id"},
      {"/round", -1, "round: expected a whole number"},
      {"/round", "0", "round: expected a whole number"},
      {"/reason", 7, "reason: expected a text"},
      {"/reason", std::string(200'000, 'x'), "reason: a text of more than"},
      {"/wall_seconds", -1, "wall_seconds: expected a number of at least 0"},
      {"/measured", Json::array(), "measured: expected an object"},
      {"/measured/timing", 3, "measured.timing: expected an object"},
      {where, "fast", "measured.timing.forward: expected an object"},
      {where + "/median_seconds", -5, "median_seconds: expected a positive number, found -5"},
      {where + "/median_seconds", 0, "median_seconds: expected a positive number"},
      {where + "/median_seconds", nullptr, "not finite"},
      {where + "/median_seconds", infinite, "not a finite number"},
      {where + "/median_seconds", 1e-12, "is not the median of its samples, 2.0"},
      {where + "/samples_seconds", Json::array(), "expected a list of numbers"},
      {where + "/samples_seconds", {2.0, -1.0, 2.0}, "samples_seconds.1: expected a positive"},
      {where + "/samples_cpu_share", {1.0}, "expected a number for each sample"},
      {where + "/preempted", {3}, "expected places in samples_seconds"},
      {where + "/low_seconds", 2.5, "low_seconds: expected at most the median"},
      {where + "/high_seconds", 1.5, "high_seconds: expected at least the median"},
      {where + "/disturbed", "yes", "expected true or false"},
      {"/measured/calibration_seconds", -1, "expected a number of at least 0"},
      {"/measured/memory", {1, 2}, "measured.memory: expected an object"},
      {"/measured/memory/output_bytes", -64, "output_bytes: expected a number of at least 0"},
      {"/measured/metrics/tokens_per_second", "many", "expected a number, found \"many\""},
      {"/measured/check/verdict", "marvellous", "verdict: expected ok or wrong"},
      {"/measured/chosen", 7, "measured.chosen: expected an object"},
      {"/measured/training", 7, "measured.training: expected an object"},
      {"/measured/mine", nested(100), "nested too deep"},
      {"/measured/mine/also", nullptr, "measured.mine.also: expected a value"}};
  for (const auto& [pointer, value, expected] : faults) {
    INFO(pointer);
    CHECK_THAT(round_fault(with(pointer.c_str(), value)), Contains(expected));
  }
  CHECK_THAT(round_fault(Json::array()), Contains("expected an object"));
}

TEST_CASE("the median of the samples that nobody disturbed is a median as well", "[round_form]") {
  Json record = with("/measured/timing/forward/samples_seconds", {2.0, 1.0, 3.0, 9.0, 9.5});
  CHECK_THAT(round_fault(record), Contains("not the median"));
  record[Json::json_pointer("/measured/timing/forward/preempted")] = {3, 4};
  CHECK(round_fault(record) == "");
}

TEST_CASE("sections that cannot be joined with the plan are found before they are kept",
          "[round_form]") {
  const Json cell = {{"id", "a"},
                     {"label", "a"},
                     {"task", "odd"},
                     {"mechanism", "any"},
                     {"settings", Json::object()}};
  const Json forecast = {{"supported", true}};
  CHECK(joined_fault(cell, forecast, timed()) == "");
  CHECK(joined_fault(cell, forecast, with("/measured/training", Json::object())) != "");
  CHECK(joined_fault(cell, forecast, with("/measured/crossover", Json::object())) != "");
  CHECK(joined_fault(cell, forecast, with("/measured/chosen", Json::object())) == "");
}

TEST_CASE("other answers of a child have their forms", "[round_form]") {
  CHECK(answer_fault("forecast", {{"supported", true}, {"cost", {{"model_flops", 1}}}}) == "");
  CHECK(answer_fault("forecast", {{"cost", Json::object()}}) != "");
  CHECK(answer_fault("forecast", {{"supported", true}, {"peak_bytes", "much"}}) != "");
  CHECK(answer_fault("data", {{"status", "ok"}, {"files", {{{"file", "a"}, {"examples", 3}}}}}) ==
        "");
  CHECK(answer_fault("data", {{"status", "ok"}, {"files", 3}}) != "");
  CHECK(answer_fault("check", {{"status", "ok"}, {"properties", Json::array()}}) == "");
  CHECK(answer_fault("check", {{"status", "ok"}, {"properties", {{{"name", "x"}}}}}) != "");
  CHECK(answer_fault("apply", {{"status", "ok"}}) != "");
  CHECK(answer_fault("apply", {{"status", "error"}, {"reason", "no"}}) == "");
  CHECK(answer_fault("probe", {{"ceilings", {{"fma", 1e9}}}, {"machine", Json::object()}}) == "");
  CHECK(answer_fault("probe", {{"ceilings", {{"fma", -1}}}, {"machine", Json::object()}}) != "");
  CHECK(answer_fault("probe", {{"ceilings", 3}, {"machine", Json::object()}}) != "");
}
