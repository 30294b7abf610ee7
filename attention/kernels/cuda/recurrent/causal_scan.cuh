// The causal scan, which the recurrent families come down to, forward and backward:
//   out_t[c] = sum_i read_t[i] M_t[i, c],   M_t = decay_t M_{t-1} + left_t right_t^T,
// token by token, where a decay is a number of each i or of each c. `causal_scan.cu` holds it
// twice.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda {

/// `Inner` is the type of what is indexed by i, `Outer` of what is indexed by c.
template <class Inner, class Outer, class Out>
struct CausalScan {
  Rows<const Inner> read, left;  ///< [batch, heads, length, inner]
  Rows<const Outer> right;       ///< [batch, heads, length, outer]
  Rows<Out> out;                 ///< [batch, heads, length, outer]
  const float* decay = nullptr;  ///< [batch, heads, length, of i or of c]; null: nothing decays
  bool decay_inner = false;      ///< by i, else by c
  /// From the last token to the first. M_t is then decay_{t+1} M_{t+1} + left_t right_t^T.
  bool reverse = false;
  /// [batch, length], rows apart by mask_stride; where it is 0, what is said to hide counts as 0
  /// whatever it holds.
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  bool hides_read = false, hides_left = false, hides_right = false;
  /// M [batch, heads, inner, outer], continued from and advanced in place; null: 0 at first, and
  /// not kept.
  float* memory = nullptr;
  int heads = 1;  ///< of a batch row
  int length = 0, inner = 0, outer = 0;
};

constexpr int most_scan_inner = 512;   ///< i
constexpr int most_chunk_inner = 128;  ///< of 16-bit numbers by chunks on the tensor cores

/// Queued on the stream for `slots` = batch * heads; no more than most_scan_inner.
template <class Inner, class Outer, class Out>
void causal_scan(const CausalScan<Inner, Outer, Out>& scan, std::int64_t slots, Stream stream);

}  // namespace attnbench::kernels::cuda
