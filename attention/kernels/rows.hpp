// Rows: a [B, H, T, w] array as kernels see it, and the numbers it may hold.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

namespace attnbench::kernels {

/// A view that owns nothing. Strides count elements; the numbers of one row lie side by side.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t batch_stride = 0;
  std::int64_t head_stride = 0;
  std::int64_t row_stride = 0;

  T* at(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return data + b * batch_stride + h * head_stride + t * row_stride;
  }
};

/// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
};

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline void narrow(float x, float& to) { to = x; }
inline void narrow(double x, double& to) { to = x; }
/// To nearest, ties to even; NaN stays NaN.
inline void narrow(float x, BFloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to.bits = static_cast<std::uint16_t>(x != x ? 0x7fc0u : rounded);
}

/// What numbers stored as T are computed in.
template <class T>
using Compute = decltype(widen(T{}));

}  // namespace attnbench::kernels
