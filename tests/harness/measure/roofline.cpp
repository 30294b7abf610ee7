#include "harness/measure/roofline.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::measure;
using Json = nlohmann::json;

namespace {

const Json ceilings = {
    {"fma_float32_flops_per_second", 100.0},   {"gemm_float32_flops_per_second", 80.0},
    {"gemm_bfloat16_flops_per_second", 300.0}, {"exp_float32_per_second", 10.0},
    {"bandwidth_l2_bytes_per_second", 50.0},   {"capacity_l2_bytes", 1000.0},
    {"bandwidth_dram_bytes_per_second", 5.0}};

}  // namespace

TEST_CASE("compute and exponentials add, memory hides behind them", "[roofline]") {
  const auto found = roofline({.flops = 200, .bytes = 50, .exponentials = 10}, ceilings);
  REQUIRE(found);
  CHECK(found->compute_seconds == Approx(2));
  CHECK(found->exponential_seconds == Approx(1));
  CHECK(found->memory_seconds == Approx(1));
  CHECK(found->floor_seconds == Approx(3));
  CHECK(found->bound == "compute");
}

TEST_CASE("the bound names the term that binds", "[roofline]") {
  CHECK(roofline({.flops = 100, .bytes = 10, .exponentials = 40}, ceilings)->bound ==
        "exponentials");
  const auto memory = roofline({.flops = 100, .bytes = 5000, .exponentials = 0}, ceilings);
  CHECK(memory->bound == "memory");
  CHECK(memory->floor_seconds == Approx(1000));
}

TEST_CASE("exponentials hide behind products where they have units of their own", "[roofline]") {
  Json gpu = ceilings;
  gpu["exponential_units"] = "own";
  const auto both = roofline({.flops = 200, .bytes = 5, .exponentials = 15}, gpu);
  REQUIRE(both);
  CHECK(both->floor_seconds == Approx(2));
  CHECK(both->bound == "compute");
  const auto exponentials = roofline({.flops = 200, .bytes = 5, .exponentials = 30}, gpu);
  CHECK(exponentials->floor_seconds == Approx(3));
  CHECK(exponentials->bound == "exponentials");
  CHECK(roofline({.flops = 200, .bytes = 5000, .exponentials = 30}, gpu)->bound == "memory");
}

TEST_CASE("traffic that fits a cache is held against that cache", "[roofline]") {
  CHECK(roofline({.bytes = 1000}, ceilings)->memory_seconds == Approx(20));
  CHECK(roofline({.bytes = 1001}, ceilings)->memory_seconds == Approx(1001 / 5.0));
}

TEST_CASE("the greater of register loop and matrix product is the ceiling", "[roofline]") {
  CHECK(roofline({.flops = 100, .dtype = "float32"}, ceilings)->floor_seconds == Approx(1));
  CHECK(roofline({.flops = 300, .dtype = "bfloat16"}, ceilings)->floor_seconds == Approx(1));
}

TEST_CASE("no roofline without the ceilings it needs", "[roofline]") {
  CHECK_FALSE(roofline({.flops = 1, .dtype = "float16"}, ceilings));
  CHECK_FALSE(roofline({.flops = 1, .bytes = 1}, Json::object()));
  CHECK_FALSE(roofline({.flops = 1}, Json::object()));
  CHECK_FALSE(roofline({}, ceilings));
}

namespace {

/// Rates of the order of a real machine's, two threads.
const Json machine = {{"fma_float32_flops_per_second", 300e9},
                      {"gemm_float32_flops_per_second", 290e9},
                      {"gemm_float64_flops_per_second", 20e9},
                      {"gemm_bfloat16_flops_per_second", 40e9},
                      {"exp_float32_per_second", 4e9},
                      {"bandwidth_l1_bytes_per_second", 800e9},
                      {"bandwidth_l2_bytes_per_second", 200e9},
                      {"bandwidth_l3_bytes_per_second", 40e9},
                      {"bandwidth_dram_bytes_per_second", 15e9},
                      {"capacity_l1_bytes", 96e3},
                      {"capacity_l2_bytes", 4e6},
                      {"capacity_l3_bytes", 30e6},
                      {"calibration_seconds", 0.01}};

bool cannot_be(const BodyWork& work, double seconds, double calibration = 0.01,
               const Json& of = machine) {
  return impossible(work, of, {seconds, calibration}).has_value();
}

}  // namespace

TEST_CASE("a time that is less than a tenth below its floor can be, one below that not",
          "[roofline]") {
  const BodyWork work{.flops = 300e6};  // a millisecond
  CHECK_FALSE(cannot_be(work, 0.92e-3));
  CHECK(cannot_be(work, 0.90e-3));
  const auto reason = impossible(work, machine, {0.2e-6, 0.01});
  REQUIRE(reason);
  CHECK_THAT(*reason, Catch::Contains("it took 0.2 ") && Catch::Contains("at least 1e+03 "));
  CHECK(cannot_be({.flops = 300e6, .exponentials = 4e6}, 1.7e-3));
  CHECK_FALSE(cannot_be({.flops = 300e6, .exponentials = 4e6}, 1.9e-3));
}

TEST_CASE("a moment that was faster than that of the ceilings excuses any time", "[roofline]") {
  const BodyWork work{.flops = 300e6};
  CHECK(cannot_be(work, 1e-6, 0.0095));
  CHECK_FALSE(cannot_be(work, 1e-6, 0.008));
  CHECK(cannot_be(work, 1e-6, 0.02));  // a slower moment excuses nothing
  CHECK_FALSE(cannot_be(work, 1e-6, 0));
  Json older = machine;
  older.erase("calibration_seconds");
  CHECK_FALSE(cannot_be(work, 1e-6, 0.01, older));
  CHECK_FALSE(cannot_be(work, 1e-6, 0.01, Json::object()));
}

TEST_CASE("floors too low to be trusted say nothing", "[roofline]") {
  CHECK_FALSE(cannot_be({.flops = 4e-6 * 300e9}, 1e-7));
  CHECK(cannot_be({.flops = 6e-6 * 300e9}, 1e-7));
}

TEST_CASE("data a little larger than a cache may be found in it for the most part", "[roofline]") {
  // 40 MB: 30 from the caches at up to 60 GB/s, 10 from memory at up to 22.5 GB/s.
  const double least = 96e3 / 800e9 + 3.904e6 / 200e9 + 26e6 / 60e9 + 10e6 / 22.5e9;
  CHECK(roofline({.bytes = 40e6}, machine)->floor_seconds > 2 * least);
  CHECK_FALSE(cannot_be({.bytes = 40e6}, least / 1.09));
  CHECK(cannot_be({.bytes = 40e6}, least / 1.12));
  CHECK(cannot_be({.bytes = 2e6}, 1e-6));
}

TEST_CASE("a library that is bad at a dtype does not make others impossible", "[roofline]") {
  CHECK_FALSE(cannot_be({.flops = 300e6, .dtype = "float64"}, 1e-3));
  CHECK(cannot_be({.flops = 300e6, .dtype = "float64"}, 0.9e-3));
  // Matrix units that the library does not use: sixteen times multiply-adds.
  CHECK_FALSE(cannot_be({.flops = 4800e6, .dtype = "bfloat16"}, 1e-3));
  CHECK(cannot_be({.flops = 4800e6, .dtype = "bfloat16"}, 0.9e-3));
  Json gpu = machine;
  gpu["exponential_units"] = "own";
  gpu["gemm_bfloat16_flops_per_second"] = 3000e9;
  CHECK_FALSE(cannot_be({.flops = 300e6}, 0.1e-3, 0.01, gpu));
  CHECK(cannot_be({.flops = 300e6}, 0.09e-3, 0.01, gpu));
}
