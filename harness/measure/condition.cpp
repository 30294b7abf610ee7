#include "harness/measure/condition.hpp"

namespace attnbench::measure {

ATTNBENCH_JSON_CODEC(CardProcess) {
  JSON_USUAL(pid);
  JSON_MAYBE(memory_bytes);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(DeviceCondition) {
  JSON_MAYBE(refusal, driver, memory_used_bytes, clock_hz, clock_greatest_hz, clock_memory_hz,
             temperature_celsius, power_watts, power_limit_watts, power_limit_usual_watts,
             persistence, ecc, ecc_pending, mig, slowed_by, processes, busy_share);
  JSON_IGNORE_REST;
}

}  // namespace attnbench::measure
