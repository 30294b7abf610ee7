#include "tests/benchmarks/floor.hpp"

#include <algorithm>

namespace attnbench::bench {

void Floor::look(kernels::ThreadTeam& team) {
  const bool narrow = arithmetic_ == Arithmetic::bfloat16;
  const int last = static_cast<int>(narrow ? Unit::tile_bfloat16 : Unit::product_float32);
  for (int unit = 0; unit <= last; ++unit) {
    rates_[unit] = std::max(rates_[unit], peak(static_cast<Unit>(unit), team));
  }
  reading_ = std::max(reading_, reading_peak(needed_.bytes, team));
  const double weights = narrow ? bfloat16_weight_peak(team) : 0;
  exponentials_ = std::max(exponentials_, weights > 0 ? weights : exponential_peak(team));
}

void Floor::report(benchmark::State& state, double seconds) const {
  const double computing = needed_.operations / *std::max_element(rates_, rates_ + unit_count);
  const double moving = needed_.bytes / reading_;
  const double floor = std::max({computing, moving, exponential_seconds()});
  state.counters["of_floor"] = floor / seconds;
  state.counters["floor_us"] = 1e6 * floor;
  state.SetLabel(floor == computing ? "operations" : floor == moving ? "bytes" : "exponentials");
}

}  // namespace attnbench::bench
