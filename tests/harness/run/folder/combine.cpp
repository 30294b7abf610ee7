#include <nlohmann/json.hpp>

#include "harness/run/folder/disturbance.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/typed_results.hpp"

using attnbench::test::combined;
using Json = nlohmann::json;

namespace {

Json cell() {
  return {{"id", "0123456789ab"},
          {"label", "latte, scan"},
          {"task", "kernel"},
          {"mechanism", "latte"},
          {"implementation", "auto"},
          {"options", {{"latents_total", 64}}},
          {"settings",
           {{"pass", "forward"}, {"length", 1024}, {"head_dim", 0}, {"width", 0}, {"heads", 4}}},
          {"device", "cpu"}};
}

Json forecast() {
  return {{"id", "0123456789ab"},
          {"supported", true},
          {"implementation", "scan"},
          {"implementation_reason", "causal"},
          {"options", {{"latents_total", 64}, {"latents_per_head", 16}}},
          {"problem", {{"heads", 4}, {"head_dim", 32}, {"length", 1024}, {"dtype", "float32"}}},
          {"cost", {{"model_flops", 2e9}, {"minimal_bytes", 1e6}, {"exponentials", 0}}},
          {"growth", {{"time_in_length", 1}}}};
}

Json round(int index, double median, double calibration) {
  Json timing = {{"samples_seconds", {median, median * 1.1, median * 0.9}},
                 {"median_seconds", median},
                 {"low_seconds", median * 0.99},
                 {"high_seconds", median * 1.01},
                 {"stop", "interval"}};
  return {{"cell", "0123456789ab"},
          {"round", index},
          {"status", "ok"},
          {"measured", {{"timing", {{"forward", timing}}}, {"calibration_seconds", calibration}}}};
}

/// As a round is filed of which other processes took too much.
Json disturbed(int index, double median) {
  Json record = round(index, median, 0.01);
  Json& timing = record["measured"]["timing"]["forward"];
  timing["disturbed"] = true;
  timing["disturbed_by"] = "preempted";
  timing["preempted"] = {0, 1, 2};
  return record;
}

/// As a round on the CPU is filed now.
Json sampled(int index, double median, double calibration) {
  Json record = round(index, median, calibration);
  Json& timing = record["measured"]["timing"]["forward"];
  timing["calibration_seconds"] = calibration;
  timing["samples_cpu_share"] = {1, 1, 1};
  timing["samples_switches"] = {0, 0, 0};
  return record;
}

Json failed(int index, const std::string& status, const std::string& reason) {
  return {{"round", index}, {"status", status}, {"reason", reason}, {"detail", "tail of the log"}};
}

}  // namespace

TEST_CASE("combine takes the median over the rounds' medians", "[result]") {
  const Json record = combined(
      cell(), forecast(), {round(2, 0.012, 0.01), round(0, 0.010, 0.01), round(1, 0.013, 0.01)},
      Json::object());
  const Json& timing = record["timing"]["forward"];
  CHECK(record["status"] == "ok");
  CHECK(record["primary"] == "forward");
  CHECK(timing["median_seconds"].get<double>() == Approx(0.012));
  CHECK(timing["low_seconds"].get<double>() == Approx(0.010));
  CHECK(timing["high_seconds"].get<double>() == Approx(0.013));
  CHECK(timing["interval"] == "range");
  CHECK(timing["minimum_seconds"].get<double>() == Approx(0.009));
  REQUIRE(timing["rounds"].size() == 3);
  CHECK(timing["rounds"][0]["round"] == 0);
  CHECK(timing["rounds"][0]["samples_seconds"].size() == 3);
}

TEST_CASE("six rounds give an order-statistic interval, one gives its samples'", "[result]") {
  std::vector<Json> rounds;
  for (int i = 0; i < 6; ++i) rounds.push_back(round(i, 0.010 + 0.001 * i, 0.01));
  const Json six = combined(cell(), forecast(), rounds, Json::object())["timing"]["forward"];
  CHECK(six["interval"] == "order");
  CHECK(six["low_seconds"].get<double>() == Approx(0.010));
  CHECK(six["high_seconds"].get<double>() == Approx(0.015));
  const Json one = combined(cell(), forecast(), {rounds[0]}, Json::object())["timing"]["forward"];
  CHECK(one["interval"] == "samples");
  CHECK(one["low_seconds"].get<double>() == Approx(0.0099));
}

TEST_CASE("calibration takes a slow moment of the machine out of the median", "[result]") {
  // The second and third rounds ran on a machine half as fast: so did their probe.
  const Json record = combined(
      cell(), forecast(), {round(0, 0.010, 0.01), round(1, 0.020, 0.02), round(2, 0.020, 0.02)},
      Json::object());
  const Json& timing = record["timing"]["forward"];
  CHECK(timing["median_seconds"].get<double>() == Approx(0.020));
  CHECK(timing["calibrated_median_seconds"].get<double>() == Approx(0.020));
  CHECK(timing["calibrated_low_seconds"].get<double>() == Approx(0.020));
  CHECK(timing["calibrated_high_seconds"].get<double>() == Approx(0.020));
}

TEST_CASE("one missing probe leaves the times uncalibrated", "[result]") {
  Json bare = round(1, 0.020, 0.02);
  bare["measured"].erase("calibration_seconds");
  const Json record = combined(cell(), forecast(), {round(0, 0.010, 0.01), bare}, Json::object());
  CHECK_FALSE(record["timing"]["forward"].contains("calibrated_median_seconds"));
}

TEST_CASE("the first round that fails speaks for the cell", "[result]") {
  const Json record = combined(cell(), forecast(),
                               {round(0, 0.01, 0.01), failed(1, "timeout", "no answer in 60 s"),
                                failed(2, "crashed", "signal 11")},
                               Json::object());
  CHECK(record["status"] == "timeout");
  CHECK(record["reason"] == "no answer in 60 s");
  CHECK(record["detail"] == "tail of the log");
  CHECK(record["timing"]["forward"]["rounds"].size() == 1);
}

TEST_CASE("a wrong cell has no time", "[result]") {
  Json round_0 = round(0, 0.01, 0.01);
  SECTION("by its status") { round_0["status"] = "wrong"; }
  SECTION("by its check") { round_0["measured"]["check"] = {{"verdict", "wrong"}}; }
  const Json record = combined(cell(), forecast(), {round_0, round(1, 0.01, 0.01)}, Json::object());
  CHECK(record["status"] == "wrong");
  CHECK_FALSE(record.contains("timing"));
  CHECK_FALSE(record.contains("primary"));
}

TEST_CASE("without rounds the plan speaks", "[result]") {
  Json refused = forecast();
  refused["supported"] = false;
  refused["reason"] = "linformer: causal is undefined";
  const Json record = combined(cell(), refused, {}, Json::object());
  CHECK(record["status"] == "unsupported");
  CHECK(record["reason"] == "linformer: causal is undefined");
  const Json never = combined(cell(), forecast(), {}, Json::object());
  CHECK(never["status"] == "skipped");
  CHECK(never["reason"].get<std::string>().find("ended") != std::string::npos);
}

TEST_CASE("derived sizes are in the record", "[result]") {
  const Json record = combined(cell(), forecast(), {}, Json::object());
  CHECK(record["options"]["latents_per_head"] == 16);
  CHECK(record["settings"]["head_dim"] == 32);
  CHECK(record["settings"]["width"] == 128);
  CHECK(record["chosen"]["implementation"] == "scan");
  CHECK(record["growth"]["time_in_length"] == 1);
}

TEST_CASE("decode shows its step first and the median of its metrics", "[result]") {
  std::vector<Json> rounds;
  for (int i = 0; i < 3; ++i) {
    Json record = round(i, 0.01, 0.01);
    const Json timing = record["measured"]["timing"]["forward"];
    record["measured"]["timing"] = {{"prefill", timing}, {"step", timing}, {"generation", timing}};
    record["measured"]["metrics"] = {{"tokens_per_second", 100.0 + i}, {"state_bytes", 4096}};
    rounds.push_back(record);
  }
  Json decode = cell();
  decode["settings"].erase("pass");
  const Json record = combined(decode, forecast(), rounds, Json::object());
  CHECK(record["primary"] == "step");
  CHECK(record["metrics"]["tokens_per_second"] == 101.0);
  CHECK(record["metrics"]["state_bytes"] == 4096);
}

TEST_CASE("the share of the floor needs the ceilings", "[result]") {
  const Json ceilings = {{"fma_float32_flops_per_second", 2e11},
                         {"gemm_float32_flops_per_second", 2e11},
                         {"exp_float32_per_second", 1e9},
                         {"bandwidth_l1_bytes_per_second", 1e12},
                         {"bandwidth_dram_bytes_per_second", 1e10}};
  const Json record = combined(cell(), forecast(), {round(0, 0.02, 0.01)}, ceilings);
  REQUIRE(record.contains("roofline"));
  CHECK(record["roofline"]["bound"] == "compute");
  CHECK(record["roofline"]["share"].get<double>() == Approx(0.5));
  CHECK_FALSE(
      combined(cell(), forecast(), {round(0, 0.02, 0.01)}, Json::object()).contains("roofline"));
}

TEST_CASE("disturbed rounds are listed and do not count", "[result][disturbance]") {
  const Json record = combined(
      cell(), forecast(), {round(0, 0.010, 0.01), disturbed(1, 8.0), round(2, 0.012, 0.01)}, {});
  const Json& timing = record["timing"]["forward"];
  CHECK(record["status"] == "ok");
  CHECK(timing["rounds"].size() == 3);
  CHECK(timing["median_seconds"].get<double>() == Approx(0.011));
  CHECK(timing["high_seconds"].get<double>() == Approx(0.012));
  CHECK(timing["minimum_seconds"].get<double>() == Approx(0.009));
  CHECK_FALSE(timing.contains("disturbed"));
}

TEST_CASE("a cell of which fewer than half of the rounds count is disturbed",
          "[result][disturbance]") {
  const Json half =
      combined(cell(), forecast(), {round(0, 0.010, 0.01), disturbed(1, 8.0)}, Json::object());
  CHECK(half["status"] == "ok");
  const Json most =
      combined(cell(), forecast(),
               {round(0, 0.010, 0.01), disturbed(1, 0.011), disturbed(2, 0.012)}, Json::object());
  CHECK(most["status"] == "disturbed");
  CHECK_THAT(most["reason"].get<std::string>(),
             Catch::Contains("other processes took the CPU from 2 of 3 rounds of forward") &&
                 Catch::Contains("--retry disturbed"));
  CHECK(most["timing"]["forward"]["disturbed"] == true);
  CHECK(most["timing"]["forward"]["median_seconds"].get<double>() == Approx(0.011));
  CHECK(combined(cell(), forecast(), {disturbed(0, 0.01)}, {})["status"] == "disturbed");
}

TEST_CASE("an interval of more than a factor of two on a side is disturbed",
          "[result][disturbance]") {
  const auto status = [](double low, double middle, double high) {
    return combined(cell(), forecast(),
                    {round(0, low, 0.01), round(1, middle, 0.01), round(2, high, 0.01)},
                    Json::object())["status"];
  };
  CHECK(status(0.006, 0.010, 0.019) == "ok");
  CHECK(status(0.009, 0.010, 0.021) == "disturbed");
  CHECK(status(28e-6, 14e-3, 14.4e-3) == "disturbed");
}

TEST_CASE("one disturbed timing makes the cell disturbed", "[result][disturbance]") {
  Json record = round(0, 0.01, 0.01);
  record["measured"]["timing"]["step"] = record["measured"]["timing"]["forward"];
  record["measured"]["timing"]["forward"]["disturbed"] = true;
  record["measured"]["timing"]["forward"]["disturbed_by"] = "stolen";
  const Json joined = combined(cell(), forecast(), {record}, Json::object());
  CHECK(joined["status"] == "disturbed");
  CHECK_THAT(joined["reason"].get<std::string>(), Catch::Contains("hypervisor"));
  CHECK_FALSE(joined["timing"]["step"].contains("disturbed"));
}

TEST_CASE("a round on a slower machine than the run's is disturbed", "[result][disturbance]") {
  const std::vector<Json> rounds{sampled(0, 0.010, 0.010), sampled(1, 0.014, 0.014),
                                 sampled(2, 0.010, 0.0101)};
  const double usual =
      attnbench::result::usual_calibration({{"a", attnbench::test::rounds(rounds)}});
  CHECK(usual == Approx(0.010));
  const Json record = combined(cell(), forecast(), rounds, Json::object(), usual);
  CHECK(record["status"] == "ok");
  const Json& timing = record["timing"]["forward"];
  CHECK(timing["rounds"][1]["disturbed_by"] == "slow");
  CHECK(timing["median_seconds"].get<double>() == Approx(0.010));
  CHECK(combined(cell(), forecast(), {rounds[1]}, {}, usual)["status"] == "disturbed");
  // Older results, and other devices, have no such rounds.
  const std::vector<Json> older{round(0, 0.010, 0.010), round(1, 0.014, 0.014)};
  CHECK(attnbench::result::usual_calibration({{"a", attnbench::test::rounds(older)}}) == 0);
  CHECK(combined(cell(), forecast(), {older[1]}, {}, usual)["status"] == "ok");
}

TEST_CASE("metrics are of rounds that nothing disturbed", "[result][disturbance]") {
  std::vector<Json> rounds{round(0, 0.01, 0.01), disturbed(1, 8.0), disturbed(2, 8.0)};
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    rounds[i]["measured"]["metrics"] = {{"tokens_per_second", i == 0 ? 100.0 : 1.0}};
  }
  CHECK(combined(cell(), forecast(), rounds, {})["metrics"]["tokens_per_second"] == 100.0);
}

TEST_CASE("a training beside others is ok, and its time is marked", "[result][disturbance]") {
  const auto trained = [](double lost) {
    const Json record = {
        {"round", 0},
        {"status", "ok"},
        {"measured",
         // Of a classification: no answer stands in a sequence.
         {{"training",
           {{"steps", 3},
            {"curve", Json::array()},
            {"test", {{{"segment", "test"}, {"questions", 4}, {"accuracy", 0.5}}}}}},
          {"metrics", {{"accuracy", 0.5}}},
          {"lost_share", lost}}}};
    return combined(cell(), forecast(), {record}, Json::object());
  };
  CHECK(trained(0.4)["status"] == "ok");
  CHECK(trained(0.4)["training"]["disturbed"] == true);
  CHECK_FALSE(trained(0.4)["training"].contains("look_back"));
  CHECK_FALSE(trained(0.4)["training"]["test"][0].contains("wrong_from_context"));
  CHECK_FALSE(trained(0.01)["training"].contains("disturbed"));
}

TEST_CASE("a search whose lengths were mostly disturbed does not count", "[result][disturbance]") {
  const auto searched = [](int index, const std::string& stop) {
    const Json crossover = {{"verdict", "found"},
                            {"low", 100},
                            {"high", 120},
                            {"length_minimum", 16},
                            {"length_maximum", 1024},
                            {"implementation", "scan"},
                            {"against", "softmax/composite"},
                            {"lengths",
                             {{{"length", 64}, {"stop", stop}},
                              {{"length", 128}, {"stop", stop}},
                              {{"length", 256}, {"stop", "decided"}}}}};
    return Json{{"round", index}, {"status", "ok"}, {"measured", {{"crossover", crossover}}}};
  };
  const Json calm = searched(0, "decided");
  CHECK(combined(cell(), forecast(), {calm, searched(1, "disturbed")}, {})["status"] == "ok");
  const Json record =
      combined(cell(), forecast(), {calm, searched(1, "disturbed"), searched(2, "disturbed")}, {});
  CHECK(record["status"] == "disturbed");
  CHECK_THAT(record["reason"].get<std::string>(), Catch::Contains("2 of 3 rounds of the search"));
}

TEST_CASE("a time below the floor of its own work is wrong and no time", "[result]") {
  const Json ceilings = {{"fma_float32_flops_per_second", 200e9},
                         {"bandwidth_dram_bytes_per_second", 10e9},
                         {"calibration_seconds", 0.01}};
  // 2e9 FLOPs take 10 ms.
  const auto at = [&](double median, double calibration) {
    return combined(cell(), forecast(), {round(0, median, calibration)}, ceilings);
  };
  CHECK(at(0.0095, 0.01)["status"] == "ok");
  const Json wrong = at(2e-7, 0.01);
  CHECK(wrong["status"] == "wrong");
  CHECK_THAT(wrong["reason"].get<std::string>(), Catch::Contains("its work takes at least 1e+04 "));
  CHECK_FALSE(wrong.contains("timing"));
  CHECK_FALSE(wrong.contains("primary"));
  CHECK(wrong["roofline"]["share"].get<double>() > 1000);
  // The ceilings were taken in a slower moment: they are too low.
  const Json faster = at(0.005, 0.005);
  CHECK(faster["status"] == "ok");
  CHECK(faster["roofline"]["share"].get<double>() == Approx(2));
}

TEST_CASE("a timed call that was wrong speaks for the cell in its own words", "[result]") {
  Json wrong = failed(1, "wrong", "a timed call changed its input \"key\" in place");
  const Json record = combined(cell(), forecast(), {round(0, 0.01, 0.01), wrong}, Json::object());
  CHECK(record["status"] == "wrong");
  CHECK(record["reason"] == "a timed call changed its input \"key\" in place");
  CHECK_FALSE(record.contains("timing"));
}
