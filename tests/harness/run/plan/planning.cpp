#include "harness/run/plan/planning.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;
using attnbench::result::Status;
using Catch::Matchers::Contains;

namespace {

Cell one_cell() {
  Cell cell;
  cell.id = "a";
  cell.label = "latte, scan";
  return cell;
}

Planned plan_one(const Forecast& forecast, std::int64_t limit = 0) {
  return plan_cells({one_cell()}, {forecast}, [limit](const Cell&) { return limit; }).front();
}

Forecast of_bytes(double bytes) {
  Forecast forecast;
  forecast.peak_bytes = bytes;
  return forecast;
}

Forecast failed(Status status, const std::string& reason) {
  Forecast forecast;
  forecast.supported = false;
  forecast.status = status;
  forecast.reason = reason;
  return forecast;
}

}  // namespace

TEST_CASE("a cell that is supported and fits is run", "[planning]") {
  CHECK(plan_one(of_bytes(100), 100).runs());
  CHECK(plan_one({}, 100).runs());
  CHECK(plan_one(of_bytes(1e15), 0).runs());
}

TEST_CASE("a training has one round, whatever the run has", "[planning]") {
  Forecast training;
  training.once = true;
  CHECK(plan_one(training).rounds(5) == 1);
  CHECK_FALSE(plan_one(training).is_timed());
  CHECK(plan_one({}).rounds(5) == 5);
}

TEST_CASE("an unsupported cell carries the reason", "[planning]") {
  Forecast forecast;
  forecast.supported = false;
  forecast.reason = "causal is undefined";
  CHECK(to_json(*plan_one(forecast).settled) ==
        Json{{"status", "unsupported"}, {"reason", "causal is undefined"}});
}

TEST_CASE("a cell that will not fit in memory is skipped with the reason", "[planning]") {
  const double gibibyte = 1 << 30;
  const Planned planned = plan_one(of_bytes(34 * gibibyte), std::int64_t{20} << 30);
  REQUIRE(planned.settled);
  CHECK(planned.settled->status == Status::skipped);
  CHECK_THAT(planned.settled->reason, Contains("predicted 34.0 GiB is over the limit of 20.0 GiB"));
  CHECK_THAT(planned.settled->reason, Contains("--memory-limit"));
}

TEST_CASE("a forecast that crashed settles its cell only", "[planning]") {
  Forecast forecast = failed(Status::crashed, "signal 11");
  forecast.detail = "log";
  const Planned planned = plan_one(forecast);
  REQUIRE(planned.settled);
  CHECK(planned.settled->status == Status::crashed);
  CHECK(planned.settled->detail == "log");
}

TEST_CASE("a mechanism that throws while it is asked costs its cell only", "[planning]") {
  const Planned planned = plan_one(failed(Status::error, "supports() threw"));
  REQUIRE_FALSE(planned.runs());
  CHECK(to_json(*planned.settled) == Json{{"status", "error"}, {"reason", "supports() threw"}});
}

TEST_CASE("a cell that makes no sense stops everything, each sentence told once", "[planning]") {
  Forecast nonsense = failed(Status::error, "heads: 3 of 64");
  nonsense.refused = true;
  std::string message;
  try {
    plan_cells({one_cell(), one_cell()}, {nonsense, nonsense}, [](const Cell&) { return 0; });
  } catch (const CellsRefused& refused) {
    message = refused.what();
  }
  CHECK(message == "latte, scan: heads: 3 of 64");
}

TEST_CASE("cells that are none are refused by their label and place", "[planning]") {
  Json cell = one_cell();
  CHECK(cells_from(Json::array({cell})).front().label == "latte, scan");
  cell["settings"] = {{"length", nullptr}};
  CHECK_THROWS_WITH(cells_from(Json::array({cell})),
                    Contains("latte, scan: /settings/length: expected"));
  CHECK_THROWS_AS(cells_from(Json::array({Json::array()})), CellsRefused);
}
