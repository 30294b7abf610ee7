#include "harness/program/run/folder/combine.hpp"

#include "core/claims_json.hpp"
#include "harness/program/run/folder/disturbance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/result_builder.hpp"

using namespace attnbench;
using result::CellRecord;
using result::RoundRecord;
using result::Timing;
using Rounds = std::vector<RoundRecord>;

namespace {

Cell combined_cell() {
  Cell cell;
  cell.id = "0123456789ab";
  cell.label = "latte, scan";
  cell.task = "kernel";
  cell.mechanism = "latte";
  cell.options = {{"latents_total", std::int64_t{64}}};
  cell.settings = {{"pass", std::string("forward")},
                   {"length", std::int64_t{1024}},
                   {"head_dim", std::int64_t{0}},
                   {"width", std::int64_t{0}},
                   {"heads", std::int64_t{4}}};
  return cell;
}

Forecast combined_forecast() {
  Forecast forecast;
  forecast.implementation = "scan";
  forecast.implementation_reason = "causal";
  forecast.options =
      OptionValues{{"latents_total", std::int64_t{64}}, {"latents_per_head", std::int64_t{16}}};
  forecast.problem = Problem{};
  forecast.problem->heads = 4;
  forecast.problem->head_dim = 32;
  forecast.problem->length = 1024;
  forecast.cost =
      nlohmann::json{{"model_flops", 2e9}, {"minimal_bytes", 1e6}, {"exponentials", 0}}.get<Cost>();
  forecast.growth = nlohmann::json{{"time_in_length", 1}}.get<Growth>();
  return forecast;
}

CellRecord combined(const Rounds& rounds, const Values& ceilings = {}, double usual = 0) {
  return run::combine(run::planned_record(combined_cell(), combined_forecast()), rounds, ceilings,
                      usual);
}

RoundRecord a_round(int index, double median, double calibration = 0.01) {
  RoundRecord record;
  record.round = index;
  record.status = Status::ok;
  result::TimingRound& timing = record.measured.timing["forward"];
  timing.samples_seconds = {median, median * 1.1, median * 0.9};
  timing.median_seconds = median;
  timing.low_seconds = median * 0.99;
  timing.high_seconds = median * 1.01;
  timing.stop = "interval";
  record.measured.calibration_seconds = calibration;
  return record;
}

/// As a round is filed of which other processes took too much.
RoundRecord disturbed_round(int index, double median, const char* by = "preempted") {
  RoundRecord record = a_round(index, median);
  record.measured.timing["forward"].disturbed = true;
  record.measured.timing["forward"].disturbed_by = by;
  return record;
}

/// As a round on the CPU is filed now.
RoundRecord sampled_round(int index, double median, double calibration) {
  RoundRecord record = a_round(index, median, calibration);
  result::TimingRound& timing = record.measured.timing["forward"];
  timing.calibration_seconds = calibration;
  timing.samples_cpu_share = std::vector<double>(3, 1);
  timing.samples_switches = std::vector<std::int64_t>(3, 0);
  return record;
}

RoundRecord failed_round(int index, Status status, const std::string& reason) {
  RoundRecord record;
  record.round = index;
  record.status = status;
  record.reason = reason;
  record.detail = "tail of the log";
  return record;
}

}  // namespace

TEST_CASE("combine takes the median over the rounds' medians", "[result]") {
  const CellRecord record = combined({a_round(2, 0.012), a_round(0, 0.010), a_round(1, 0.013)});
  const Timing& timing = record.timing.at("forward");
  CHECK(record.status == Status::ok);
  CHECK(record.primary == "forward");
  CHECK(timing.median_seconds == Approx(0.012));
  CHECK(timing.low_seconds == Approx(0.010));
  CHECK(timing.high_seconds == Approx(0.013));
  CHECK(timing.interval == "range");
  CHECK(*timing.minimum_seconds == Approx(0.009));
  REQUIRE(timing.rounds.size() == 3);
  CHECK(timing.rounds[0].round == 0);
  CHECK(timing.rounds[0].samples_seconds.size() == 3);
  // Six rounds give an order-statistic interval, one gives its samples'.
  Rounds rounds;
  for (int i = 0; i < 6; ++i) rounds.push_back(a_round(i, 0.010 + 0.001 * i));
  const Timing six = combined(rounds).timing.at("forward");
  CHECK(six.interval == "order");
  CHECK(six.low_seconds == Approx(0.010));
  CHECK(six.high_seconds == Approx(0.015));
  const Timing one = combined({rounds[0]}).timing.at("forward");
  CHECK(one.interval == "samples");
  CHECK(one.low_seconds == Approx(0.0099));
}

TEST_CASE("calibration takes a slow moment of the machine out of the median", "[result]") {
  // The second and third rounds ran on a machine half as fast: so did their probe.
  Rounds rounds{a_round(0, 0.010, 0.01), a_round(1, 0.020, 0.02), a_round(2, 0.020, 0.02)};
  const Timing timing = combined(rounds).timing.at("forward");
  CHECK(timing.median_seconds == Approx(0.020));
  CHECK(*timing.calibrated_median_seconds == Approx(0.020));
  CHECK(*timing.calibrated_low_seconds == Approx(0.020));
  CHECK(*timing.calibrated_high_seconds == Approx(0.020));
  // One missing probe leaves the times uncalibrated.
  rounds[1].measured.calibration_seconds.reset();
  CHECK_FALSE(combined(rounds).timing.at("forward").calibrated_median_seconds);
}

TEST_CASE("the first round that fails speaks for the cell", "[result]") {
  const CellRecord record =
      combined({a_round(0, 0.01), failed_round(1, Status::timeout, "no answer in 60 s"),
                failed_round(2, Status::crashed, "signal 11")});
  CHECK(record.status == Status::timeout);
  CHECK(record.reason == "no answer in 60 s");
  CHECK(record.detail == "tail of the log");
  CHECK(record.timing.at("forward").rounds.size() == 1);
}

TEST_CASE("a wrong cell has no time, and says why in the words of its round", "[result]") {
  Rounds rounds{a_round(0, 0.01), a_round(1, 0.01)};
  const std::string reason = "a timed call changed its input \"key\" in place";
  SECTION("by its status") { rounds[1] = failed_round(1, Status::wrong, reason); }
  SECTION("by its check") {
    result::Check& check = rounds[0].measured.check.emplace();
    check.verdict = "wrong";
    check.reason = reason;
  }
  const CellRecord record = combined(rounds);
  CHECK(record.status == Status::wrong);
  CHECK(record.reason == reason);
  CHECK(record.timing.empty());
  CHECK(record.primary.empty());
}

TEST_CASE("of the checks the first that did not pass speaks for a cell", "[result]") {
  Rounds rounds{a_round(0, 0.01), failed_round(1, Status::error, "cannot be checked: too small")};
  rounds[0].measured.check = result::Check{"ok", "", {}};
  rounds[1].measured.check = result::Check{"unchecked", "cannot be checked: too small", {}};
  const CellRecord record = combined(rounds);
  CHECK(record.check->verdict == "unchecked");
  CHECK(result::is_unchecked(record));
  rounds[1] = failed_round(1, Status::error, "no device");
  CHECK_FALSE(result::is_unchecked(combined(rounds)));
}

TEST_CASE("without rounds the plan speaks", "[result]") {
  Forecast refused = combined_forecast();
  refused.supported = false;
  refused.reason = "linformer: causal is undefined";
  const CellRecord record = run::combine(run::planned_record(combined_cell(), refused), {}, {});
  CHECK(record.status == Status::unsupported);
  CHECK(record.reason == "linformer: causal is undefined");
  const CellRecord never = combined({});
  CHECK(never.status == Status::skipped);
  CHECK(never.reason == run::not_reached);
  // Sizes are derived.
  CHECK(never.options.at("latents_per_head") == 16);
  CHECK(never.settings.at("head_dim") == 32);
  CHECK(never.settings.at("width") == 128);
  Forecast narrow = combined_forecast();
  narrow.problem->head_dim = 8;
  narrow.problem->model_width = 128;
  Cell cell = combined_cell();
  cell.settings["key_dim"] = std::int64_t{0};
  const CellRecord keys = run::combine(run::planned_record(cell, narrow), {}, {});
  CHECK(keys.settings.at("key_dim") == 8);
  CHECK(keys.settings.at("head_dim") == 32);
  CHECK(keys.settings.at("width") == 128);
  CHECK(never.chosen->implementation == "scan");
  CHECK(never.growth.at("time_in_length") == 1);
}

TEST_CASE("decode shows its step first and the median of its metrics", "[result]") {
  Rounds rounds;
  for (int i = 0; i < 3; ++i) {
    RoundRecord& record = rounds.emplace_back(a_round(i, 0.01));
    auto& timing = record.measured.timing;
    timing["prefill"] = timing["step"] = timing["generation"] = timing["forward"];
    timing.erase("forward");
    record.measured.metrics = {{"tokens_per_second", 100.0 + i}, {"state_bytes", 4096}};
  }
  Cell decode = combined_cell();
  decode.settings.erase("pass");
  const CellRecord record =
      run::combine(run::planned_record(decode, combined_forecast()), rounds, {});
  CHECK(record.primary == "step");
  CHECK(record.metrics.at("tokens_per_second") == 101.0);
  CHECK(record.metrics.at("state_bytes") == 4096);
}

TEST_CASE("disturbed rounds are listed and do not count", "[result][disturbance]") {
  Rounds rounds{a_round(0, 0.010), disturbed_round(1, 8.0), a_round(2, 0.012)};
  for (RoundRecord& one : rounds) {
    one.measured.metrics["tokens_per_second"] = one.measured.timing["forward"].disturbed ? 1 : 100;
  }
  const CellRecord record = combined(rounds);
  const Timing& timing = record.timing.at("forward");
  CHECK(record.status == Status::ok);
  CHECK(timing.rounds.size() == 3);
  CHECK(timing.median_seconds == Approx(0.011));
  CHECK(timing.high_seconds == Approx(0.012));
  CHECK(*timing.minimum_seconds == Approx(0.009));
  CHECK_FALSE(timing.disturbed);
  CHECK(record.metrics.at("tokens_per_second") == 100.0);
}

TEST_CASE("a cell of which fewer than half of the rounds count is disturbed",
          "[result][disturbance]") {
  CHECK(combined({a_round(0, 0.010), disturbed_round(1, 8.0)}).status == Status::ok);
  const CellRecord most =
      combined({a_round(0, 0.010), disturbed_round(1, 0.011), disturbed_round(2, 0.012)});
  CHECK(most.status == Status::disturbed);
  CHECK_THAT(most.reason,
             Catch::Contains("other processes took the CPU from 2 of 3 rounds of forward") &&
                 Catch::Contains("--retry disturbed"));
  CHECK(most.timing.at("forward").disturbed);
  CHECK(most.timing.at("forward").median_seconds == Approx(0.011));
  // One disturbed timing is enough.
  RoundRecord record = disturbed_round(0, 0.01, "stolen");
  record.measured.timing["step"] = a_round(0, 0.01).measured.timing["forward"];
  const CellRecord joined = combined({record});
  CHECK(joined.status == Status::disturbed);
  CHECK_THAT(joined.reason, Catch::Contains("hypervisor"));
  CHECK_FALSE(joined.timing.at("step").disturbed);
}

TEST_CASE("an interval of more than a factor of two on a side is disturbed",
          "[result][disturbance]") {
  const auto status = [](double low, double middle, double high) {
    return combined({a_round(0, low), a_round(1, middle), a_round(2, high)}).status;
  };
  CHECK(status(0.006, 0.010, 0.019) == Status::ok);
  CHECK(status(0.009, 0.010, 0.021) == Status::disturbed);
  CHECK(status(28e-6, 14e-3, 14.4e-3) == Status::disturbed);
}

TEST_CASE("a round on a slower machine than the run's is disturbed", "[result][disturbance]") {
  const Rounds rounds{sampled_round(0, 0.010, 0.010), sampled_round(1, 0.014, 0.014),
                      sampled_round(2, 0.010, 0.0101)};
  const double usual = run::usual_calibration({{"a", rounds}});
  CHECK(usual == Approx(0.010));
  const CellRecord record = combined(rounds, {}, usual);
  CHECK(record.status == Status::ok);
  CHECK(record.timing.at("forward").rounds[1].disturbed_by == "slow");
  CHECK(record.timing.at("forward").median_seconds == Approx(0.010));
  CHECK(combined({rounds[1]}, {}, usual).status == Status::disturbed);
  // Older results, and other devices, have no such rounds.
  const Rounds older{a_round(0, 0.010, 0.010), a_round(1, 0.014, 0.014)};
  CHECK(run::usual_calibration({{"a", older}}) == 0);
  CHECK(combined({older[1]}, {}, usual).status == Status::ok);
}

TEST_CASE("a training beside others is ok, and its time is marked", "[result][disturbance]") {
  const auto trained = [](double lost) {
    RoundRecord record;
    record.status = Status::ok;
    record.measured.training = result::Training{};
    record.measured.metrics = {{"accuracy", 0.5}};
    record.measured.lost_share = lost;
    return combined({record});
  };
  CHECK(trained(0.4).status == Status::ok);
  CHECK(trained(0.4).training->disturbed);
  CHECK_FALSE(trained(0.01).training->disturbed);
}

TEST_CASE("a search whose lengths were mostly disturbed does not count", "[result][disturbance]") {
  const auto searched = [](int index, const std::string& stop) {
    RoundRecord record;
    record.round = index;
    record.status = Status::ok;
    record.measured.crossover = test::round_of("found", 100, 120);
    for (const std::string& one : {stop, stop, std::string("decided")}) {
      record.measured.crossover->lengths->emplace_back().stop = one;
    }
    return record;
  };
  const RoundRecord calm = searched(0, "decided");
  CHECK(combined({calm, searched(1, "disturbed")}).status == Status::ok);
  const CellRecord record = combined({calm, searched(1, "disturbed"), searched(2, "disturbed")});
  CHECK(record.status == Status::disturbed);
  CHECK_THAT(record.reason, Catch::Contains("2 of 3 rounds of the search"));
  // Its problem has no length of its own.
  CHECK(record.timing.empty());
  CHECK(record.metrics.contains("crossover_length"));
  CHECK_FALSE(record.problem.contains("length"));
}

TEST_CASE("the share of the floor needs the ceilings; a time below the floor is wrong",
          "[result]") {
  const Values ceilings = {
      {"fma_float32_flops_per_second", 2e11},    {"gemm_float32_flops_per_second", 2e11},
      {"exp_float32_per_second", 1e9},           {"bandwidth_l1_bytes_per_second", 1e12},
      {"bandwidth_dram_bytes_per_second", 10e9}, {"calibration_seconds", 0.01}};
  CHECK_FALSE(combined({a_round(0, 0.02)}).roofline);
  // 2e9 FLOPs take 10 ms.
  const auto at = [&](double median, double calibration) {
    return combined({a_round(0, median, calibration)}, ceilings);
  };
  CHECK(at(0.0095, 0.01).status == Status::ok);
  CHECK(at(0.02, 0.01).roofline->bound == "compute");
  CHECK(at(0.02, 0.01).roofline->share == Approx(0.5));
  const CellRecord wrong = at(2e-7, 0.01);
  CHECK(wrong.status == Status::wrong);
  CHECK_THAT(wrong.reason, Catch::Contains("its work takes at least 1e+04 "));
  CHECK(wrong.timing.empty());
  CHECK(wrong.primary.empty());
  CHECK(wrong.roofline->share > 1000);
  // The ceilings were taken in a slower moment: they are too low.
  const CellRecord faster = at(0.005, 0.005);
  CHECK(faster.status == Status::ok);
  CHECK(faster.roofline->share == Approx(2));
}

TEST_CASE("sections that cannot be joined with the plan are found before they are kept",
          "[result]") {
  const CellRecord planned = test::CellBuilder("a", "odd").ended(Status::skipped);
  const auto fault = [&](const char* section) -> std::string {
    nlohmann::json record = {{"cell", "a"}, {"round", 0}, {"status", "ok"}};
    record["measured"][section] = nlohmann::json::object();
    try {
      return run::joined_fault(planned, record.get<RoundRecord>());
    } catch (const SchemaError& error) {
      return error.what();
    }
  };
  CHECK(fault("metrics") == "");
  CHECK(fault("training") != "");
  CHECK(fault("crossover") != "");
  CHECK(fault("chosen") == "");
}
