#include "attention/kernels/cpu/product/multiply.hpp"

namespace attnbench::kernels {

template <class R, int Bytes, bool Add>
void multiply(std::int64_t m, std::int64_t n, std::int64_t k, Left<R> a, const R* b,
              std::int64_t b_stride, R* c, std::int64_t c_stride) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    // As many sums as the registers hold: 32 of 64 bytes, 16 of the narrower kinds.
    constexpr int M = has_32_registers<Bytes> ? 8 : 4;
    constexpr int lanes = Simd<R, Bytes>::lanes;
    constexpr Start start = Add ? Start::kept : Start::zero;
    std::int64_t j = 0;
    for (; j + 2 * lanes <= n; j += 2 * lanes) {
      for (std::int64_t i = 0; i < m; i += M) {
        detail::multiply_tile<R, Bytes, M, 2, start>(k, a.from(i, 0), b + j, b_stride,
                                                     c + i * c_stride + j, c_stride);
      }
    }
    for (; j < n; j += lanes) {
      for (std::int64_t i = 0; i < m; i += M) {
        detail::multiply_tile<R, Bytes, M, 1, start>(k, a.from(i, 0), b + j, b_stride,
                                                     c + i * c_stride + j, c_stride);
      }
    }
  });
}

#define ATTNBENCH_INSTANTIATE(R, BYTES)                                                      \
  template void multiply<R, BYTES, false>(std::int64_t, std::int64_t, std::int64_t, Left<R>, \
                                          const R*, std::int64_t, R*, std::int64_t);         \
  template void multiply<R, BYTES, true>(std::int64_t, std::int64_t, std::int64_t, Left<R>,  \
                                         const R*, std::int64_t, R*, std::int64_t);
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
