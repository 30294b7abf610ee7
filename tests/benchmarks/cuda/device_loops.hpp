// Small device loops that the benchmarks need beside the kernels: random inputs, and the
// clock.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::bench {

using kernels::cuda::Stream;

/// `count` standard normal numbers, the same for one seed; rounded to T (float, BFloat16, Half).
template <class T>
void fill_normal(T* data, std::int64_t count, std::uint64_t seed, Stream stream);

/// The clock of one multiprocessor, counted for 0.2 ms behind the work that is queued: what this
/// work ended with. Waits for it.
double clock_hz(Stream stream);

/// After a call that was refused: the next launch must not be blamed for it.
void forget_error() noexcept;

}  // namespace attnbench::bench
