#include "harness/program/run/supervise/conditions.hpp"

#include "core/failure.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::run;

namespace {

RunSettings settings_with(int threads) {
  RunSettings settings;
  settings.threads = threads;
  settings.seed = 7;
  settings.suite.measure = {
      {"rounds", 5}, {"cell_timeout_seconds", 60}, {"relative_interval", 0.01}};
  return settings;
}

Planned planned_on(const std::string& device, bool training) {
  Planned one;
  one.cell.id = "a";
  one.cell.device = device;
  one.forecast.once = training;
  return one;
}

}  // namespace

TEST_CASE("the identity is what numbers hold under: rounds and limits are no part of it",
          "[conditions]") {
  const Conditions conditions(settings_with(2));
  const Identity& identity = conditions.identity();
  CHECK(identity.threads == 2);
  CHECK(identity.seed == 7);
  CHECK(identity.measure == Json{{"relative_interval", 0.01}});
  CHECK(identity.machine == conditions.card().host + ", " + conditions.card().cpu_model);
  CHECK_FALSE(identity.binary.empty());
  CHECK(identity.devices.empty());
  CHECK_FALSE(identity.blas_core);
  CHECK_FALSE(identity == Conditions(settings_with(1)).identity());
  // The processor has no card of its own, and an unknown device is refused.
  Conditions named(settings_with(1));
  named.add_device("cpu");
  CHECK(named.card().devices.empty());
  CHECK(named.identity().devices.empty());
  CHECK_THROWS_AS(named.add_device("abacus"), EnvironmentFailure);
}

TEST_CASE("cells may take most of the free memory, or what the user says", "[conditions]") {
  RunSettings settings = settings_with(1);
  const Conditions free(settings);
  CHECK(free.memory_bytes() > 0);
  CHECK(free.memory_limit("cpu") == free.memory_bytes());
  settings.memory_limit_bytes = 12345;
  const Conditions said(settings);
  CHECK(said.memory_bytes() == 12345);
  CHECK(said.memory_limit("cpu") == 12345);
}

TEST_CASE("the BLAS of the environment is part of the identity, where a cell runs on the CPU",
          "[conditions]") {
  RunSettings settings = settings_with(1);
  settings.keep_blas_core = true;
  const auto ignore = [](const std::string&) {};
  Conditions idle(settings);
  idle.choose_blas(settings, {}, ignore);
  CHECK_FALSE(idle.card().blas);
  Conditions used(settings);
  used.choose_blas(settings, {planned_on("cpu", false)}, ignore);
  REQUIRE(used.card().blas);
  CHECK(used.card().blas->chosen_by == used.blas().chosen_by);
  CHECK(used.identity().blas_core.has_value() == (used.blas().chosen_by != "library"));
}

TEST_CASE("threads of what is timed wait actively", "[conditions]") {
  CHECK(waiting_for(planned_on("cpu", false), 2) == Waiting::active);
  CHECK(waiting_for(planned_on("cpu", true), 1) == Waiting::active);
  CHECK(waiting_for(planned_on("cuda", true), 2) == Waiting::active);
}
