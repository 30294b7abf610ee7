// Small device loops that the benchmarks need beside the kernels: random inputs, exponentials as a
// ceiling, the clock.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::bench {

using kernels::cuda::Stream;

/// `count` standard normal numbers, the same for one seed; rounded to T (float, BFloat16, Half).
template <class T>
void fill_normal(T* data, std::int64_t count, std::uint64_t seed, Stream stream);

/// Copies within the device's memory, by the runtime's own routine.
void copy(void* to, const void* from, std::size_t bytes, Stream stream);

/// Computes 2^x again and again in every multiprocessor, in independent chains, and writes one
/// number a thread to `out` [exponential_threads()].
void exponentials(float* out, Stream stream);
std::int64_t exponential_threads();
double exponentials_a_call();

/// Of one multiprocessor, counted for 0.2 ms behind the work that is queued: the clock that this
/// work ended with. Waits for it.
double clock_hz(Stream stream);

/// After a call that was refused: the next launch must not be blamed for it.
void forget_error() noexcept;

}  // namespace attnbench::bench
