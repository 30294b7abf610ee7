#include "core/result/result_check.hpp"

#include <limits>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
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

Json schema_fixture() { return read_result(test::source_folder() + "/tests/reports/fixture.json"); }

std::string complaint_of(const Json& document) {
  try {
    result::check_form(document, "x.json");
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "";
}

}  // namespace

TEST_CASE("a record of a round is taken as it is", "[schema]") {
  CHECK(result::round_fault(timed()) == "");
  CHECK(result::round_fault(
            {{"cell", "a"}, {"round", 3}, {"status", "timeout"}, {"reason", "late"}}) == "");
  CHECK(result::round_fault(with("/measured/training", {{"curve", {{{"loss", 1.5}}}}})) == "");
  CHECK(result::round_fault(with("/measured/timing/forward/clock_ratio", 0.9)) == "");
}

TEST_CASE("a record that is none names the key and what it expects there", "[schema]") {
  const std::string where = forward;
  const double infinite = std::numeric_limits<double>::infinity();
  const std::vector<std::tuple<std::string, Json, std::string>> faults{
      {"/status", "marvellous", "status: expected one of ok, wrong, disturbed"},
      {"/status", 3, "status: expected one of ok, wrong, disturbed"},
      {"/cell", "", "cell: expected the id of a cell"},
      {"/round", -1, "round: expected an integer from 0 to 1000000"},
      {"/round", "0", "round: expected an integer from 0 to 1000000"},
      {"/reason", 7, "reason: expected a string"},
      {"/reason", std::string(200'000, 'x'), "reason: a text of more than"},
      {"/wall_seconds", -1, "wall_seconds: expected a number of at least 0"},
      {"/measured", Json::array(), "measured: expected an object"},
      {"/measured/timing", 3, "/measured/timing: expected an object"},
      {"/measured/parts", "long", "/measured/parts: expected an object"},
      {"/measured/parts", {{"samples", "long"}}, "/measured/parts/samples: expected a number"},
      {where, "fast", "/measured/timing/forward: expected an object"},
      {where + "/median_seconds", -5,
       "median_seconds: expected a positive number of seconds from 1e-12 to 1e9, found -5"},
      {where + "/median_seconds", 0, "median_seconds: expected a positive number"},
      {where + "/median_seconds", nullptr, "not finite"},
      {where + "/median_seconds", infinite, "not a finite number"},
      {where + "/median_seconds", 1e-12, "is not the median of its samples, 2.0"},
      {where + "/samples_seconds", Json::array(), "expected a list of positive numbers"},
      {where + "/samples_seconds", {2.0, -1.0, 2.0}, "samples_seconds/1: expected a positive"},
      {where + "/samples_cpu_share", {1.0}, "expected as many numbers as samples_seconds"},
      {where + "/preempted", {3}, "expected indices of samples_seconds"},
      {where + "/low_seconds", 2.5, "low_seconds: expected at most the median"},
      {where + "/high_seconds", 1.5, "high_seconds: expected at least the median"},
      {where + "/disturbed", "yes", "expected true or false"},
      {"/measured/calibration_seconds", -1, "expected a number of at least 0"},
      {"/measured/memory", {1, 2}, "/measured/memory: expected an object"},
      {"/measured/memory/output_bytes", -64, "output_bytes: expected a number of at least 0"},
      {"/measured/metrics/tokens_per_second", "many", "expected a number, found \"many\""},
      {"/measured/check/verdict", "marvellous", "verdict: expected one of ok, wrong"},
      {"/measured/chosen", 7, "/measured/chosen: expected an object"},
      {"/measured/training", 7, "/measured/training: expected an object"},
      {"/measured/mine", nested(100), "nested too deep"},
      {"/measured/mine/also", nullptr, "/measured/mine/also: expected a value"}};
  for (const auto& [pointer, value, expected] : faults) {
    INFO(pointer);
    CHECK_THAT(result::round_fault(with(pointer.c_str(), value)), Contains(expected));
  }
  CHECK_THAT(result::round_fault(Json::array()), Contains("expected an object"));
}

TEST_CASE("the median of the samples that nobody disturbed is a median as well", "[schema]") {
  Json record = with("/measured/timing/forward/samples_seconds", {2.0, 1.0, 3.0, 9.0, 9.5});
  CHECK_THAT(result::round_fault(record), Contains("not the median"));
  record[Json::json_pointer("/measured/timing/forward/preempted")] = {3, 4};
  CHECK(result::round_fault(record) == "");
}

TEST_CASE("other answers of a child have their forms", "[schema]") {
  CHECK(result::answer_fault("forecast", {{"id", "a"}, {"supported", true}, {"peak_bytes", 1}}) ==
        "");
  CHECK(result::answer_fault("forecast", {{"id", "a"}}) != "");
  for (const Json& bytes : {Json("much"), Json(-1)}) {
    CHECK(result::answer_fault("forecast",
                               {{"id", "a"}, {"supported", true}, {"peak_bytes", bytes}}) != "");
  }
  CHECK(result::answer_fault(
            "data", {{"status", "ok"}, {"files", {{{"file", "a"}, {"examples", 3}}}}}) == "");
  CHECK(result::answer_fault("data", {{"status", "ok"}, {"files", 3}}) != "");
  CHECK(result::answer_fault("check", {{"status", "ok"}, {"properties", Json::array()}}) == "");
  CHECK(result::answer_fault("check", {{"status", "ok"}, {"properties", {{{"name", "x"}}}}}) != "");
  CHECK(result::answer_fault("apply", {{"status", "ok"}}) != "");
  CHECK(result::answer_fault("apply", {{"status", "error"}, {"reason", "no"}}) == "");
  CHECK(result::answer_fault("probe",
                             {{"ceilings", {{"fma", 1e9}}}, {"machine", Json::object()}}) == "");
  CHECK(result::answer_fault("probe", {{"ceilings", {{"fma", -1}}}, {"machine", Json::object()}}) !=
        "");
  CHECK(result::answer_fault("probe", {{"ceilings", 3}, {"machine", Json::object()}}) != "");
}

TEST_CASE("lists beside the samples are validated", "[schema]") {
  const auto complaint = [](const char* key, const Json& value) {
    Json document = schema_fixture();
    document["attnbench"]["cells"][0]["timing"]["forward"]["rounds"][0][key] = value;
    return complaint_of(document);
  };
  CHECK(complaint("samples_cpu_share", {1, 0.5, 0.25}).empty());
  CHECK(complaint("preempted", {0, 2}).empty());
  CHECK(complaint("disturbed", true).empty());
  CHECK(complaint("round", 1.0).empty());
  CHECK_THAT(complaint("samples_cpu_share", {1}), Contains("as many numbers"));
  CHECK_THAT(complaint("samples_switches", {"a", 1, 2}), Contains("a number"));
  CHECK_THAT(complaint("preempted", {3}), Contains("indices"));
  CHECK_THAT(complaint("round", 1.5), Contains("an integer, found 1.5"));
  CHECK_THAT(complaint("preempted", {-1}), Contains("an integer of at least 0"));
  CHECK_THAT(complaint("disturbed", "yes"), Contains("true or false"));
}

TEST_CASE("a malformed result is refused by file and pointer", "[schema]") {
  struct Fault {
    const char* pointer;
    Json value;  ///< null = removed
    const char* expected;
  };
  const std::vector<Fault> faults{
      {"/context", nullptr, "an object"},
      {"/benchmarks", Json::object(), "an array"},
      {"/attnbench/schema", 2, "1, found 2"},
      {"/attnbench/schema", "1", "1, found \"1\""},
      {"/attnbench/cells", nullptr, "an array"},
      {"/attnbench/suite/title", 3, "a string"},
      {"/attnbench/suite/labels/0", 3, "a string"},
      {"/attnbench/suite/tasks/kernel", 3, "an object"},
      {"/attnbench/run/threads", "2", "an integer"},
      {"/attnbench/ceilings/cpu", 1, "an object"},
      {"/attnbench/cells/0", 1, "an object"},
      {"/attnbench/cells/0/id", nullptr, "a string"},
      {"/attnbench/cells/0/status", "fine", "one of ok, wrong"},
      {"/attnbench/cells/0/settings", Json::array(), "an object"},
      {"/attnbench/cells/0/settings/dtype", 32, "a string"},
      {"/attnbench/cells/0/problem/heads", "two", "a number, found \"two\""},
      {"/attnbench/cells/0/primary", "backward", "the name of a timing"},
      {"/attnbench/cells/0/primary", nullptr, "the name of a timing"},
      {"/attnbench/cells/0/timing/forward/median_seconds", "fast", "a positive number of seconds"},
      {"/attnbench/cells/0/timing/forward/low_seconds", 0, "a positive number"},
      {"/attnbench/cells/0/timing/forward/rounds/0/median_seconds", 1e-320, "a positive number"},
      {"/attnbench/cells/0/timing/forward/rounds/1/median_seconds", nullptr,
       "a positive number of seconds"},
      {"/attnbench/cells/0/memory/workspace_bytes", "4 KiB", "a number"},
      {"/attnbench/cells/0/roofline/share", nullptr, "a number"},
  };
  const Json whole = schema_fixture();
  for (const Fault& fault : faults) {
    Json document = whole;
    const Json::json_pointer place(fault.pointer);
    if (fault.value.is_null()) {
      document[place.parent_pointer()].erase(place.back());
    } else {
      document[place] = fault.value;
    }
    INFO(fault.pointer);
    const std::string message = complaint_of(document);
    CHECK_THAT(message, Catch::Matchers::StartsWith(std::string("x.json: ") + fault.pointer));
    CHECK_THAT(message, Contains(fault.expected));
  }
}

TEST_CASE("parts that are counted may be called as anything else is", "[schema]") {
  Json document = test::result_of({test::training_cell("latte", 0.001, 1, 0.4, 0.41)});
  Json& parameters = document["attnbench"]["cells"][0]["training"]["parameters"];
  parameters = {{"mechanism", 64}, {"device", 7}};
  CHECK(complaint_of(document).empty());
  parameters["mechanism"] = "many";
  CHECK_THAT(complaint_of(document), Contains("/training/parameters/mechanism: expected a number"));
}

TEST_CASE("the first fault is found in long lists, and in time", "[schema]") {
  Json document = schema_fixture();
  Json& round = document["attnbench"]["cells"][0]["timing"]["forward"]["rounds"][0];
  for (const char* list : {"samples_cpu_share", "samples_switches", "preempted"}) round.erase(list);
  round["samples_seconds"] = std::vector<double>(300'000, 0.5);
  CHECK(complaint_of(document).empty());
  round["samples_seconds"][1234] = -1;
  CHECK_THAT(complaint_of(document), Contains("/samples_seconds/1234: expected a positive number"));
  round["samples_seconds"] = std::vector<std::string>(300'000, "x");
  CHECK_THAT(complaint_of(document), Contains("/samples_seconds/0: expected a positive number"));
}
