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

  constexpr T* at(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return data + b * batch_stride + h * head_stride + t * row_stride;
  }
};

/// The upper half of a float.
struct BFloat16 {
  std::uint16_t bits = 0;
};

/// IEEE 754's binary16. On the CPU no kernel computes with it.
struct Half {
  std::uint16_t bits = 0;
};

inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
inline float widen(BFloat16 x) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16);
}

inline float widen(Half x) {
  const std::uint32_t magnitude = x.bits & 0x7fffu;
  // 2^112 brings the exponent's bias from 15 to 127, and numbers below the normal ones with it.
  float value = std::bit_cast<float>(magnitude << 13) * 0x1p112F;
  if (magnitude >= 0x7c00u) value = std::bit_cast<float>((magnitude << 13) | 0x7f800000u);
  return (x.bits & 0x8000u) != 0 ? -value : value;
}

inline void narrow(float x, float& to) { to = x; }
inline void narrow(double x, double& to) { to = x; }
/// To nearest, ties to even; NaN stays NaN.
inline void narrow(float x, BFloat16& to) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  to.bits = static_cast<std::uint16_t>(x != x ? 0x7fc0u : rounded);
}

/// To nearest, ties to even; past the greatest number infinity, and NaN stays NaN.
inline void narrow(float x, Half& to) {
  const auto bits = std::bit_cast<std::uint32_t>(x);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  std::uint32_t half = 0;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u;
  } else if (magnitude >= 0x477ff000u) {
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {
    half = (magnitude - 0x38000000u + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  } else {
    // Below 2^-14 the step is 2^-24: adding 1/2, whose step it is in a float, rounds to it.
    half = std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) - 0x3f000000u;
  }
  to.bits = static_cast<std::uint16_t>(half | sign);
}

/// What numbers stored as T are computed in.
template <class T>
using Compute = decltype(widen(T{}));

}  // namespace attnbench::kernels
