#include "harness/run/folder/foreign.hpp"

#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/document.hpp"
#include "core/schema/result_check.hpp"
#include "reports/tables/layout.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/files.hpp"
#include "tests/support/typed_results.hpp"

using namespace attnbench;
using result::Json;

namespace {

Json ours() { return result::read_result(test::source_folder() + "/tests/reports/fixture.json"); }

/// A cell of the fixture that has a time of `forward`.
Json timed_cell(const Json& document) {
  for (const Json& cell : document.at("attnbench").at("cells")) {
    if (cell.value("timing", Json::object()).contains("forward")) return cell;
  }
  throw std::logic_error("the fixture has no forward time");
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

Json joined_with(const Json& foreign) {
  return result::with_foreign(ours().get<result::Result>(), foreign, "peers.json");
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
  const Json before = ours();
  const Json beside = timed_cell(before);
  const Json joined = joined_with(foreign_beside(beside.at("id")));
  result::check_form(joined, "joined");
  const Json& cells = joined.at("attnbench").at("cells");
  REQUIRE(cells.size() == before.at("attnbench").at("cells").size() + 1);
  const Json& cell = cells.back();
  CHECK(cell.at("label") == "flash (Other 2.0)");
  CHECK(cell.at("foreign").at("blas") == "mkl");
  CHECK(cell.at("foreign").at("threads") == 2);
  CHECK(cell.at("settings") == beside.at("settings"));
  CHECK(cell.at("timing").at("forward").at("median_seconds").get<double>() == Approx(0.3));
  CHECK(cell.at("timing").at("forward").at("rounds").size() == 2);
  CHECK(cell.at("timing").at("forward").at("minimum_seconds").get<double>() == Approx(0.1));
  CHECK_FALSE(cell.contains("check"));
  CHECK_FALSE(cell.value("cost", Json::object()).contains("executed_flops"));
  CHECK(joined.at("attnbench").at("provenance").at("foreign").contains("Other 2.0"));
  CHECK(joined.at("attnbench").at("suite").at("labels").back() == "flash (Other 2.0)");
}

TEST_CASE("a foreign line is drawn in the panel of the cells beside it", "[foreign]") {
  const Json before = ours();
  const Json joined = joined_with(foreign_beside(timed_cell(before).at("id")));
  CHECK(test::panels(joined).size() == test::panels(before).size());
}

TEST_CASE("a foreign time that was disturbed is kept and marked", "[foreign]") {
  Json foreign = foreign_beside(timed_cell(ours()).at("id"));
  foreign["records"][0]["status"] = "disturbed";
  foreign["records"][0]["reason"] = "the machine was busy";
  const Json joined = joined_with(foreign);
  const Json& cell = joined.at("attnbench").at("cells").back();
  CHECK(cell.at("status") == "disturbed");
  CHECK(cell.at("reason") == "the machine was busy");
  CHECK(cell.at("timing").at("forward").at("median_seconds").get<double>() == Approx(0.3));
}

TEST_CASE("a cell that a foreign program could not measure has a reason", "[foreign]") {
  Json foreign = foreign_beside(timed_cell(ours()).at("id"));
  foreign["records"][0].erase("seconds");
  foreign["records"][0]["status"] = "out_of_memory";
  foreign["records"][0]["reason"] = "3 GiB wanted";
  const Json joined = joined_with(foreign);
  const Json& cell = joined.at("attnbench").at("cells").back();
  CHECK(cell.at("status") == "out_of_memory");
  CHECK(cell.at("reason") == "3 GiB wanted");
  CHECK_FALSE(cell.contains("timing"));
}

TEST_CASE("a bad foreign file is refused with the place", "[foreign]") {
  const Json good = foreign_beside(timed_cell(ours()).at("id"));
  const auto with = [&good](const std::string& pointer, const Json& value) {
    Json bad = good;
    bad[Json::json_pointer(pointer)] = value;
    return refusal(bad);
  };
  const auto without = [&good](const std::string& key) {
    Json bad = good;
    bad.erase(key);
    return refusal(bad);
  };
  CHECK_THAT(without("schema"),
             Catch::Contains("peers.json: /schema: expected a value, found nothing"));
  CHECK_THAT(with("/schema", 2), Catch::Contains("/schema: expected 1, found 2"));
  CHECK_THAT(without("program"), Catch::Contains("/program: expected a value, found nothing"));
  CHECK_THAT(without("threads"), Catch::Contains("/threads: expected a value"));
  CHECK_THAT(without("command"), Catch::Contains("/command: expected a value"));
  CHECK_THAT(with("/records", 1), Catch::Contains("/records: expected an array"));
  CHECK_THAT(with("/more", 1), Catch::Contains("/more: expected one of command, program"));
  CHECK_THAT(with("/records/0/beside", "none"),
             Catch::Contains("/records/0/beside: expected the id"));
  CHECK_THAT(with("/records/0/label", 7), Catch::Contains("/records/0/label: expected a string"));
  CHECK_THAT(with("/records/0/when", 7), Catch::Contains("/records/0/when: expected one of"));
  CHECK_THAT(with("/records/0/status", "good"),
             Catch::Contains("/records/0/status: expected a status"));
  CHECK_THAT(with("/records/0/seconds", 3),
             Catch::Contains("/records/0/seconds: expected an object"));
  CHECK_THAT(with("/records/0/seconds", Json::object()), Catch::Contains("at least one timing"));
  CHECK_THAT(with("/records/0/seconds/nap", Json::array()), Catch::Contains("/seconds/nap"));
  for (const Json& samples : {Json(0.1), Json::array(), Json({0.0}), Json({-1.0}), Json({"1"})}) {
    INFO(samples.dump());
    CHECK_THAT(with("/records/0/seconds/forward/1", samples),
               Catch::Contains("/records/0/seconds/forward/1"));
  }
  Json twice = good;
  twice["records"].push_back(good["records"][0]);
  CHECK(refusal(twice) == "accepted");  // the same line may have many points
  CHECK(refusal(Json(3)) == "peers.json: /: expected an object, found 3");
}
