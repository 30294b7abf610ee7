// The CPU's ceilings: multiply-adds and exponentials from registers, bandwidth per level of memory.
#include <algorithm>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>

#include "harness/measure/caches.hpp"
#include "harness/measure/cpu_loops.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/team_times.hpp"

namespace attnbench::measure {
namespace {

/// Results go here, so that the loops that made them stay.
void keep(float value) {
  volatile float sink = value;
  static_cast<void>(sink);
}

/// 64-byte aligned numbers, written once so that their pages are there.
class Numbers {
 public:
  explicit Numbers(std::int64_t count)
      : count_(count),
        values_(static_cast<float*>(::operator new (static_cast<std::size_t>(count) * sizeof(float),
                                                    std::align_val_t{64}))) {
    for (std::int64_t i = 0; i < count; ++i)
      values_.get()[i] = 1.0F / static_cast<float>(1 + i % 7);
  }
  float* data() const { return values_.get(); }
  std::int64_t count() const { return count_; }

 private:
  struct Free {
    void operator()(float* values) const { ::operator delete (values, std::align_val_t{64}); }
  };
  std::int64_t count_;
  std::unique_ptr<float, Free> values_;
};

// Registers are not shared, so each thread's own best counts: on a busy machine all threads are
// seldom undisturbed at the same moment. Short bodies find an undisturbed moment sooner.
double multiply_add_rate(int threads) {
  const CpuLoops& loops = cpu_loops();
  const std::int64_t rounds = 200'000;
  const auto body = [&]() -> Body { return [&] { keep(loops.multiply_add(rounds)); }; };
  return static_cast<double>(rounds) * loops.flops_per_round *
         time_team(threads, 50, body).per_second;
}

/// A body that takes 2^x of 2048 numbers in L1 `repeats` times.
Body exponential_body(int repeats) {
  auto from = std::make_shared<Numbers>(2048);
  auto to = std::make_shared<Numbers>(2048);
  return [from, to, repeats] {
    for (int i = 0; i < repeats; ++i) {
      cpu_loops().exponentials(from->data(), to->data(), from->count());
    }
    keep(to->data()[0]);
  };
}

double exponential_rate(int threads) {
  const int repeats = 3'000;
  const auto body = [&] { return exponential_body(repeats); };
  return 2048.0 * repeats * time_team(threads, 50, body).per_second;
}

enum class Level { of_one_core, shared };

/// Bytes per second of reading `bytes` per thread over and over. What cores share must be read by
/// all at once.
double bandwidth(int threads, std::int64_t bytes, Level level) {
  const std::int64_t count = std::max<std::int64_t>(128, bytes / 512 * 128);
  const std::int64_t total = 64 << 20;
  const std::int64_t repeats = std::max<std::int64_t>(1, total / (4 * count));
  const auto body = [&]() -> Body {
    auto numbers = std::make_shared<Numbers>(count);
    return [numbers, repeats] {
      for (std::int64_t i = 0; i < repeats; ++i) {
        keep(cpu_loops().read(numbers->data(), numbers->count()));
      }
    };
  };
  const TeamTimes times = time_team(threads, 10, body);
  const double per_second = level == Level::shared ? threads / times.together : times.per_second;
  return 4.0 * static_cast<double>(count * repeats) * per_second;
}

}  // namespace

Json cpu_ceilings(int threads) {
  threads = std::max(1, threads);
  const CacheSizes caches = cache_sizes();
  const std::int64_t from_l3 = std::max(2 * caches.l2, caches.l3 / (2 * threads));
  // Four times the last level, but never so much that a small machine runs short.
  const std::int64_t from_dram = std::min<std::int64_t>(4 * caches.l3, 512 << 20) / threads;
  const double one_thread = multiply_add_rate(1);
  return {{"fma_float32_flops_per_second", threads > 1 ? multiply_add_rate(threads) : one_thread},
          {"fma_float32_one_thread_flops_per_second", one_thread},
          {"exp_float32_per_second", exponential_rate(threads)},
          {"bandwidth_l1_bytes_per_second", bandwidth(threads, caches.l1 / 2, Level::of_one_core)},
          {"bandwidth_l2_bytes_per_second", bandwidth(threads, caches.l2 / 2, Level::of_one_core)},
          {"bandwidth_l3_bytes_per_second", bandwidth(threads, from_l3, Level::shared)},
          {"bandwidth_dram_bytes_per_second", bandwidth(threads, from_dram, Level::shared)},
          {"capacity_l1_bytes", caches.l1 * threads},
          {"capacity_l2_bytes", caches.l2 * threads},
          {"capacity_l3_bytes", caches.l3},
          {"threads", threads},
          {"isa", cpu_loops().isa}};
}

double calibration_seconds(int threads) {
  const CpuLoops& loops = cpu_loops();
  const auto rounds = static_cast<std::int64_t>(1.5e8 / loops.flops_per_round);
  const auto body = [&]() -> Body {
    const Body exponentials = exponential_body(4'000);
    return [&loops, rounds, exponentials] {
      keep(loops.multiply_add(rounds));
      exponentials();
    };
  };
  // Each thread at its own best: starting together takes a free CPU for all of them at once, which
  // says who is busy beside us, not how fast the machine runs.
  const int team = std::max(1, threads);
  return team / time_team(team, 4, body).per_second;
}

}  // namespace attnbench::measure
