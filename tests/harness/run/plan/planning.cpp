#include "harness/run/plan/planning.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench::run;
using Catch::Matchers::Contains;

namespace {

const std::vector<Json> one_cell = {{{"id", "a"}, {"label", "latte, scan"}}};

Planned plan_one(const Json& forecast, std::int64_t limit = 0) {
  return plan_cells(one_cell, {forecast}, [limit](const Json&) { return limit; }).front();
}

}  // namespace

TEST_CASE("what is supported and fits runs", "[planning]") {
  CHECK(plan_one({{"supported", true}, {"peak_bytes", 100}}, 100).runs());
  CHECK(plan_one({{"supported", true}}, 100).runs());
  CHECK(plan_one({{"supported", true}, {"peak_bytes", 1e15}}, 0).runs());
}

TEST_CASE("a training has one round, whatever the run has", "[planning]") {
  CHECK(plan_one({{"supported", true}, {"once", true}}).rounds(5) == 1);
  CHECK(plan_one({{"supported", true}}).rounds(5) == 5);
}

TEST_CASE("what is not supported carries the reason", "[planning]") {
  const Planned planned = plan_one({{"supported", false}, {"reason", "causal is undefined"}});
  CHECK(planned.settled == Json{{"status", "unsupported"}, {"reason", "causal is undefined"}});
}

TEST_CASE("what will not fit is skipped aloud", "[planning]") {
  const double gibibyte = 1 << 30;
  const Planned planned =
      plan_one({{"supported", true}, {"peak_bytes", 34 * gibibyte}}, std::int64_t{20} << 30);
  CHECK(planned.settled["status"] == "skipped");
  const std::string reason = planned.settled["reason"];
  CHECK_THAT(reason, Contains("predicted 34.0 GiB is over the limit of 20.0 GiB"));
  CHECK_THAT(reason, Contains("--memory-limit"));
}

TEST_CASE("a forecast that crashed settles its cell only", "[planning]") {
  const Planned planned = plan_one(
      {{"supported", false}, {"status", "crashed"}, {"reason", "signal 11"}, {"detail", "log"}});
  CHECK(planned.settled["status"] == "crashed");
  CHECK(planned.settled["detail"] == "log");
}

TEST_CASE("a mechanism that throws while it is asked costs its cell only", "[planning]") {
  const Planned planned =
      plan_one({{"supported", false}, {"status", "error"}, {"reason", "supports() threw"}});
  CHECK_FALSE(planned.runs());
  CHECK(planned.settled == Json{{"status", "error"}, {"reason", "supports() threw"}});
}

TEST_CASE("a cell that makes no sense stops everything, each sentence told once", "[planning]") {
  const Json nonsense = {
      {"supported", false}, {"status", "error"}, {"refused", true}, {"reason", "heads: 3 of 64"}};
  std::string message;
  try {
    plan_cells({one_cell[0], one_cell[0]}, {nonsense, nonsense}, [](const Json&) { return 0; });
  } catch (const attnbench::UsageFailure& failure) {
    message = failure.what();
  }
  CHECK(message == "latte, scan: heads: 3 of 64");
}
