#include "harness/program/run/plan/planning.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;
using attnbench::Status;
using Catch::Matchers::Contains;

namespace {

attnbench::Cell one_cell() {
  attnbench::Cell cell;
  cell.id = "a";
  cell.label = "latte, scan";
  return cell;
}

Planned plan_one(const attnbench::Forecast& forecast, std::int64_t limit = 0) {
  return plan_cells({one_cell()}, {forecast}, [limit](const attnbench::Cell&) { return limit; })
      .front();
}

attnbench::Forecast of_bytes(double bytes) {
  attnbench::Forecast forecast;
  forecast.peak_bytes = bytes;
  return forecast;
}

/// One that is not supported or, with a status, could not be made.
attnbench::Forecast refused(const std::string& reason, std::optional<Status> status = {}) {
  attnbench::Forecast forecast;
  forecast.supported = false;
  forecast.status = status;
  forecast.reason = reason;
  return forecast;
}

}  // namespace

TEST_CASE("a cell that is supported and fits is run; another is settled with the reason",
          "[planning]") {
  CHECK(plan_one(of_bytes(100), 100).runs());
  CHECK(plan_one({}, 100).runs());
  CHECK(plan_one(of_bytes(1e15), 0).runs());
  CHECK(plan_one({}).rounds(5) == 5);
  attnbench::Forecast training;
  training.once = true;
  CHECK(plan_one(training).rounds(5) == 1);
  CHECK_FALSE(plan_one(training).is_timed());

  CHECK(to_json(*plan_one(refused("causal is undefined")).settled) ==
        Json{{"status", "unsupported"}, {"reason", "causal is undefined"}});
  CHECK(to_json(*plan_one(refused("supports() threw", Status::error)).settled) ==
        Json{{"status", "error"}, {"reason", "supports() threw"}});
  attnbench::Forecast crashed = refused("signal 11", Status::crashed);
  crashed.detail = "log";
  CHECK(plan_one(crashed).settled->status == Status::crashed);
  CHECK(plan_one(crashed).settled->detail == "log");
  const double gibibyte = 1 << 30;
  const Planned large = plan_one(of_bytes(34 * gibibyte), std::int64_t{20} << 30);
  REQUIRE(large.settled);
  CHECK(large.settled->status == Status::skipped);
  CHECK_THAT(large.settled->reason, Contains("predicted 34.0 GiB is over the limit of 20.0 GiB") &&
                                        Contains("--memory-limit"));
}

TEST_CASE("a mechanism that answers only after its options were read is not measured without them",
          "[planning]") {
  attnbench::Cell cell;
  cell.options_unknown = true;
  const auto planned = plan_cells({cell, attnbench::Cell{}}, {of_bytes(1), of_bytes(1)},
                                  [](const auto&) { return 0; });
  REQUIRE(planned[0].settled);
  CHECK(planned[0].settled->status == Status::error);
  CHECK_THAT(planned[0].settled->reason, Contains("start the run again"));
  CHECK(planned[1].runs());
}

TEST_CASE("a cell that makes no sense stops everything, each sentence told once", "[planning]") {
  attnbench::Forecast nonsense = refused("heads: 3 of 64", Status::error);
  nonsense.refused = true;
  std::string message;
  try {
    plan_cells({one_cell(), one_cell()}, {nonsense, nonsense},
               [](const attnbench::Cell&) { return 0; });
  } catch (const CellsRefused& refusal) {
    message = refusal.what();
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

TEST_CASE("forecasts that failed are not remembered", "[run]") {
  const attnbench::Forecast fine;
  attnbench::Forecast unsupported;
  unsupported.supported = false;
  unsupported.reason = "causal";
  CHECK(is_whole({fine, unsupported}));
  attnbench::Forecast crashed = unsupported;
  crashed.status = Status::crashed;
  CHECK_FALSE(is_whole({fine, crashed}));
}
