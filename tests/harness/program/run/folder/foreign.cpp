#include "harness/program/run/folder/foreign.hpp"

#include <algorithm>
#include <cmath>

#include "core/failure.hpp"
#include "core/result/result_check.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using result::CellRecord;
using Json = nlohmann::json;

namespace {

/// A cell of the fixture that has a time of `forward`.
CellRecord cell_beside() {
  const std::vector<CellRecord> cells = test::fixture_result().cells;
  return *std::find_if(cells.begin(), cells.end(),
                       [](const CellRecord& cell) { return cell.timing.contains("forward"); });
}

Json foreign_beside(const std::string& id) {
  return {{"schema", 1},
          {"program", {{"name", "Other"}, {"version", "2.0"}, {"blas", "mkl"}}},
          {"threads", 2},
          {"command", "other.py"},
          {"records",
           {{{"beside", id},
             {"label", "flash"},
             {"implementation", "sdpa"},
             {"seconds", {{"forward", {{0.3, 0.1, 0.2}, {0.4, 0.4, 0.4}}}}}}}}};
}

result::Result joined_with(const Json& foreign) {
  return run::with_foreign(test::fixture_result(), foreign, "peers.json");
}

std::string refusal(const Json& foreign) {
  try {
    joined_with(foreign);
  } catch (const UsageFailure& failure) {
    return failure.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("a foreign record stands beside the cell whose problem it solved", "[foreign]") {
  const CellRecord beside = cell_beside();
  const result::Result joined = joined_with(foreign_beside(beside.id));
  result::check_form(joined, "joined");
  REQUIRE(joined.cells.size() == test::fixture_result().cells.size() + 1);
  const CellRecord& cell = joined.cells.back();
  CHECK(cell.label == "flash (Other 2.0)");
  CHECK(Json(cell).at("foreign").at("blas") == "mkl");
  CHECK(Json(cell).at("foreign").at("threads") == 2);
  CHECK(cell.settings == beside.settings);
  const result::Timing& timing = cell.timing.at("forward");
  CHECK(timing.median_seconds == Approx(0.3));
  CHECK(timing.rounds.size() == 2);
  CHECK(*timing.minimum_seconds == Approx(0.1));
  CHECK_FALSE(cell.check);
  REQUIRE(cell.cost);
  CHECK_FALSE(std::isfinite(cell.cost->executed_flops));
  CHECK(Json(joined.provenance).at("foreign").contains("Other 2.0"));
  CHECK(joined.suite.labels->back() == "flash (Other 2.0)");
  // In the panel of the cells beside it.
  CHECK(test::panels(joined).size() == test::panels(test::fixture_result()).size());
}

TEST_CASE("a foreign cell that was disturbed or could not be measured has a reason", "[foreign]") {
  Json foreign = foreign_beside(cell_beside().id);
  Json& record = foreign["records"][0];
  record["status"] = "disturbed";
  record["reason"] = "the machine was busy";
  CellRecord cell = joined_with(foreign).cells.back();
  CHECK(cell.status == Status::disturbed);
  CHECK(cell.reason == "the machine was busy");
  CHECK(cell.timing.at("forward").median_seconds == Approx(0.3));
  record.erase("seconds");
  record["status"] = "out_of_memory";
  cell = joined_with(foreign).cells.back();
  CHECK(cell.status == Status::out_of_memory);
  CHECK(cell.reason == "the machine was busy");
  CHECK(cell.timing.empty());
}

TEST_CASE("a bad foreign file is refused with the place", "[foreign]") {
  const Json good = foreign_beside(cell_beside().id);
  const auto with = [&good](const std::string& pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return refusal(bad);
  };
  for (const char* key : {"schema", "program", "threads", "command"}) {
    Json bad = good;
    bad.erase(key);
    CHECK_THAT(refusal(bad), Catch::Contains("peers.json: /" + std::string(key) +
                                             ": expected a value, found nothing"));
  }
  const std::vector<std::tuple<std::string, Json, std::string>> faults{
      {"/schema", 2, "/schema: expected 1, found 2"},
      {"/records", 1, "/records: expected an array"},
      {"/more", 1, "/more: expected one of command, program"},
      {"/records/0/beside", "none", "/records/0/beside: expected the id"},
      {"/records/0/label", 7, "/records/0/label: expected a string"},
      {"/records/0/when", 7, "/records/0/when: expected one of"},
      {"/records/0/status", "good", "/records/0/status: expected a status"},
      {"/records/0/seconds", 3, "/records/0/seconds: expected an object"},
      {"/records/0/seconds", Json::object(), "at least one timing"},
      {"/records/0/seconds/nap", Json::array(), "/seconds/nap"}};
  for (const auto& [pointer, value, expected] : faults) {
    CHECK_THAT(with(pointer, value), Catch::Contains(expected));
  }
  const std::string place = "/records/0/seconds/forward/1";
  for (const Json& samples : {Json(0.1), Json::array(), Json({0.0}), Json({-1.0}), Json({"1"})}) {
    INFO(samples.dump());
    CHECK_THAT(with(place, samples), Catch::Contains(place));
  }
  Json twice = good;
  twice["records"].push_back(good["records"][0]);
  CHECK(refusal(twice) == "accepted");  // the same line may have many points
  CHECK(refusal(Json(3)) == "peers.json: /: expected an object, found 3");
}
