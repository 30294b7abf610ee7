// Matrix descriptors of wgmma, for the emulator.
#pragma once

#include <cstdint>
#include <cstring>

#include "attention/kernels/rows.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper_shared.hpp"

namespace attnbench::emulated {

constexpr int product_depth = 16;

inline float number(bool half, std::uint16_t bits) {
  return half ? kernels::widen(kernels::Half{bits}) : kernels::widen(kernels::BFloat16{bits});
}

/// A matrix descriptor: how an operand lies in shared memory, swizzled by 128 bytes.
class Operand {
 public:
  explicit Operand(std::uint64_t descriptor)
      : start_(field(descriptor, 0)),
        leading_(field(descriptor, 16)),
        stride_(field(descriptor, 32)) {
    if (descriptor >> 62 != 1 || (descriptor >> 49 & 7) != 0) {
      throw Fault("wgmma: only operands swizzled by 128 bytes without a base offset are emulated");
    }
    constexpr std::uint64_t fields = 0xc00e'3fff'3fff'3fff;
    if ((descriptor & ~fields) != 0)
      throw Fault("wgmma: a descriptor with bits between its fields");
  }

  /// 16 numbers along the inner dimension of row (of A) or column (of B) n. K-major: atoms of 8
  /// rows of 128 bytes, `stride` apart.
  void k_major(bool half, int n, float* out, int step) const {
    if (start_ % 128 + 2 * product_depth > 128)
      throw Fault("wgmma: an operand leaves its 128 bytes");
    if (start_ % 1024 >= 128 || stride_ % 1024 != 0) throw Fault(unaligned);
    for (int part = 0; part < 2; ++part) {
      eight(half, start_ + n / 8 * stride_ + n % 8 * 128 + part * 16, out + part * 8 * step, step);
    }
  }

  /// Columns n to n + 7 at inner index k. N-major: atoms of 64 columns by 8 inner indices,
  /// `leading` apart along the columns and `stride` apart along the inner dimension.
  void n_major(bool half, int k, int n, float* out) const {
    if (start_ % 1024 != 0 || stride_ % 1024 != 0 || leading_ % 1024 != 0) throw Fault(unaligned);
    eight(half, start_ + n / 64 * leading_ + n % 64 * 2 + k / 8 * stride_ + k % 8 * 128, out, 1);
  }

 private:
  static constexpr const char* unaligned =
      "wgmma: an operand's swizzle does not begin on 1024 bytes, as no base offset says";
  static std::uint32_t field(std::uint64_t descriptor, int bit) {
    return static_cast<std::uint32_t>(descriptor >> bit & 0x3fff) << 4;
  }
  static void eight(bool half, std::uint32_t address, float* out, int step) {
    std::uint16_t bits[8];
    std::memcpy(bits, shared_pointer(swizzled(address), 16, 16), 16);
    for (int e = 0; e < 8; ++e) out[e * step] = number(half, bits[e]);
  }
  std::uint32_t start_, leading_, stride_;
};

}  // namespace attnbench::emulated
