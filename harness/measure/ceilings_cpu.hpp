// Ceilings of the CPU: rates of arithmetic and of each level of memory, and what measures them.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "core/memory_ladder.hpp"

namespace attnbench::measure {

/// Cache sizes in bytes: l1 and l2 of one core, l3 of one group of cores.
struct CacheSizes {
  std::int64_t l1 = 32 << 10;
  std::int64_t l2 = 1 << 20;
  std::int64_t l3 = 32 << 20;
};

/// The cache sizes from /sys; a level that is missing there keeps the default above.
CacheSizes cache_sizes();

/// What a thread repeats. It is made in that thread, so that its memory is near.
using LoopBody = std::function<void()>;

/// Times of threads that start together.
struct TeamTimes {
  double together = 0;    ///< least seconds until all are done
  double per_second = 0;  ///< bodies per second, each thread at its own best
};

/// Starts `threads` threads together `trials` times (at least once), after one call to warm up.
TeamTimes time_team(int threads, int trials, const std::function<LoopBody()>& make_body);

/// Rungs of 128 KiB to 512 MiB, each four times the previous one; none above `max_bytes`. Takes
/// about a second.
std::vector<Rung> memory_ladder(int threads, double max_bytes);

/// Of each rate {name: number} the greater one; one that only `one` or `other` has, as it is.
nlohmann::json greater_rates(const nlohmann::json& one, const nlohmann::json& other);

/// Measures the CPU's ceilings with `threads` threads in about a second:
/// {fma_float32_flops_per_second, …_one_thread_flops_per_second, exp_float32_per_second,
/// bandwidth_l1_bytes_per_second, …_l2, …_l3,
///  …_dram}. What a core has of its own is measured before and after what cores share, and the
/// greater rate counts: in a disturbed moment L2 had a sixth of its bandwidth, by which possible
/// times seemed impossible. GEMM rates per dtype are added by the worker.
nlohmann::json cpu_ceilings(int threads);

/// Seconds of a fixed piece of work (FMAs and exponentials from registers), the least of a few
/// repetitions: how fast the machine runs at this moment. About 10 ms.
double calibration_seconds(int threads);

}  // namespace attnbench::measure
