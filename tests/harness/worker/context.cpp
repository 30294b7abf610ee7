#include "harness/worker/context.hpp"

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "harness/worker/allocator.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

worker::WorkSettings quick() {
  worker::WorkSettings settings;
  settings.round = 3;
  settings.seed = 17;
  settings.checkpoint = "somewhere";
  settings.rule.warmup_seconds = 0;
  settings.rule.min_seconds = 0;
  settings.rule.max_seconds = 0.1;
  return settings;
}

}  // namespace

TEST_CASE("the context files samples in the record's form", "[context]") {
  const Registry registry;
  worker::ChildContext context(quick(), registry, {});
  int calls = 0;
  int prepared = 0;
  // Long enough for /proc/stat, which counts in steps of 10 ms, to move.
  const auto call = [&] {
    ++calls;
    std::this_thread::sleep_for(std::chrono::milliseconds(4));
  };
  const double median = context.measure("forward", {call, [&] { ++prepared; }});
  const tasks::Json measured = context.measured();
  const tasks::Json& timing = measured.at("timing").at("forward");
  const auto samples = timing.at("samples_seconds").get<std::vector<double>>();
  CHECK(samples.size() >= 10);
  CHECK(calls == static_cast<int>(samples.size()) + 2);
  CHECK(timing.at("samples_cpu_share").size() == samples.size());
  CHECK(timing.at("samples_switches").size() == samples.size());
  CHECK(timing.at("lost_share") >= 0);
  CHECK(timing.at("others_share") <= 1);
  CHECK(timing.at("stolen_share") <= 1);
  CHECK(measured.at("lost_share") >= 0);
  CHECK(prepared == calls);
  CHECK(timing.at("round") == 3);
  CHECK(timing.at("median_seconds") == median);
  CHECK(timing.at("low_seconds") <= timing.at("median_seconds"));
  CHECK(timing.at("median_seconds") <= timing.at("high_seconds"));
  CHECK(timing.at("calibration_seconds").get<double>() > 0);
  CHECK(measured.at("calibration_seconds") == timing.at("calibration_seconds"));
  CHECK(measured.at("threads") == at::get_num_threads());
  CHECK(measured.at("cpus").size() >= 1);
  CHECK(context.round() == 3);
  CHECK(context.seed() == 17);
  CHECK(context.checkpoint_folder() == "somewhere");
  CHECK(&context.registry() == &registry);
}

TEST_CASE("other numbers come before each call, and before what comes before it", "[context]") {
  const Registry registry;
  worker::ChildContext context(quick(), registry, {});
  std::string order;
  tasks::Body body;
  body.refresh = [&] { order += 'r'; };
  body.before = [&] { order += 'b'; };
  body.call = [&] { order += 'c'; };
  const auto in_turns = [&order] {
    for (std::size_t i = 0; i < order.size(); ++i) {
      if (order[i] != "rbc"[i % 3]) return false;
    }
    return order.size() % 3 == 0 && order.size() > 10;
  };
  context.measure("forward", body);
  CHECK(in_turns());
  order.clear();
  context.compare(body, body, 1);
  CHECK(in_turns());
  order.clear();
  body.before = {};
  context.measure("forward", body);
  CHECK(order.substr(0, 6) == "rcrcrc");
}

TEST_CASE("samples too few for an interval are filed without one", "[context]") {
  const Registry registry;
  worker::WorkSettings settings = quick();
  settings.rule.max_samples = 3;
  worker::ChildContext context(settings, registry, {});
  context.measure("step", {[] {}});
  const tasks::Json timing = tasks::Json(context.measured())["timing"]["step"];
  CHECK(timing["samples_seconds"].size() == 3);
  CHECK(timing["stop"] == "samples");
  CHECK_FALSE(timing.contains("low_seconds"));
}

TEST_CASE("progress is sent at most ten times a second, its end always", "[context]") {
  const Registry registry;
  std::vector<double> told;
  worker::ChildContext context(
      quick(), registry, [&](double done, double, std::string_view) { told.push_back(done); });
  for (int i = 1; i <= 1000; ++i) context.progress(i, 1000, "rows");
  REQUIRE(told.size() >= 2);
  CHECK(told.size() <= 10);
  CHECK(told.front() == 1);
  CHECK(told.back() == 1000);
}

TEST_CASE("cancellation is the caller's to say", "[context]") {
  const Registry registry;
  bool stop = false;
  worker::ChildContext context(quick(), registry, {}, [&] { return stop; });
  CHECK_FALSE(context.cancelled());
  stop = true;
  CHECK(context.cancelled());
  CHECK_FALSE(worker::ChildContext(quick(), registry, {}).cancelled());
}
