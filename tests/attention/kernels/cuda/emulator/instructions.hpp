// The instructions of a warp, as the PTX ISA defines them, for the emulator. They mean the same as
// the wrappers of attention/kernels/cuda/mma_sm80.cuh, whose place they take there.
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "attention/kernels/rows.hpp"

namespace attnbench::emulated {

template <class To, class From>
To same_bits(const From& from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

void warp_together(const char* kind, void* operands,
                   const std::function<void(const std::vector<void*>&)>& together);

int lane_now();
void warp_barrier();
/// Bit l is lane l's vote.
unsigned ballot(bool vote);

/// Each lane gets what lane `from(lane)` holds.
template <class T, class From>
T shuffle(T x, const From& from) {
  struct Operands {
    T mine, got;
    int from;
  };
  Operands operands{x, x, 0};
  operands.from = from(lane_now());
  warp_together("shfl", &operands, [](const std::vector<void*>& lanes) {
    for (void* lane : lanes) {
      auto& each = *static_cast<Operands*>(lane);
      const auto source = static_cast<std::size_t>(each.from);
      if (source < lanes.size()) each.got = static_cast<Operands*>(lanes[source])->mine;
    }
  });
  return operands.got;
}

/// ldmatrix.m8n8.x4: lanes 8n to 8n + 7 hold the addresses of the rows of matrix n.
void load_matrices(std::uint32_t (&to)[4], std::uint32_t address, bool transposed);
/// ldmatrix.m8n8.x2: lanes 0 to 15 hold the addresses.
void load_matrices(std::uint32_t (&to)[2], std::uint32_t address, bool transposed);
/// movmatrix.m8n8.trans.
std::uint32_t transpose_matrix(std::uint32_t x);

/// mma.m16n8k16, T is BFloat16 or Half, accumulated in float: sum += a b.
template <class T>
void multiply_add_k16(float (&sum)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                      std::uint32_t b1);

/// cp.async of 16 bytes, of which those from `bytes` on become 0. The copy happens when its group
/// is waited for; what stood there is gone at once.
void copy_async(std::uint32_t to, const void* from, int bytes);
void commit_copies();
/// cp.async.wait_group.
void wait_copies(int pending);

/// cvt.rn.bf16x2.f32 and cvt.rn.f16x2.f32.
template <class T>
std::uint32_t pack_pair(float low, float high) {
  T parts[2];
  kernels::narrow(low, parts[0]);
  kernels::narrow(high, parts[1]);
  return same_bits<std::uint32_t>(parts);
}
/// ex2.approx.ftz.f32, exactly rounded here.
float exp2_fast(float x);

}  // namespace attnbench::emulated
