#include "harness/measure/roofline.hpp"

#include <nlohmann/json.hpp>

#include "tests/support/catch.hpp"

using namespace attnbench::measure;

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
  CHECK_FALSE(roofline({.flops = 1}, Json()));
  CHECK_FALSE(roofline({}, ceilings));
}
