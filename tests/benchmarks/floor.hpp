// A kernel's floor: the greatest of the times that what its definition needs takes at this
// machine's ceilings, which are measured right before and after it.
#pragma once

#include <benchmark/benchmark.h>

#include "tests/benchmarks/peak.hpp"

namespace attnbench::bench {

/// Products count 2 operations a pair of numbers; inputs are read and outputs written once (logits
/// where they are inputs, never weights); one exponential a weight.
struct Needed {
  double operations = 0, bytes = 0, exponentials = 0;
};

/// By the unit that multiplies fastest in float32, or in bfloat16: AMX, whose products run beside
/// the exponentials, or the widest that is there.
enum class Arithmetic { float32, bfloat16 };

class Floor {
 public:
  Floor(const Needed& needed, Arithmetic arithmetic) : needed_(needed), arithmetic_(arithmetic) {}
  /// Measures the ceilings; the best of all looks counts.
  void look(kernels::ThreadTeam& team);
  /// Counters of_floor and floor_us, and as a label the term that binds: operations, bytes or
  /// exponentials. `seconds` is the time of one call.
  void report(benchmark::State& state, double seconds) const;
  /// The time of the exponentials alone.
  double exponential_seconds() const { return needed_.exponentials / exponentials_; }
  /// The best rate of `unit` at any look; 0 where it was not measured or is not there.
  double rate(Unit unit) const { return rates_[static_cast<std::size_t>(unit)]; }

 private:
  Needed needed_;
  Arithmetic arithmetic_;
  double rates_[unit_count] = {};
  double reading_ = 0, exponentials_ = 0;
};

}  // namespace attnbench::bench
