// The ways of computing softmax attention over a band of keys: what the mechanisms softmax and
// window share, and what others can use for their local part.
#pragma once

#include <cstdint>

#include "attention/kernels/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// Farther than any sequence is long.
constexpr std::int64_t unlimited = std::int64_t{1} << 40;

/// One call: q [B, H, T, D], k [B, G, S, D], v [B, G, S, Dv], G a divisor of H. Query t sits on key
/// t + offset and sees the keys s with t + offset - left <= s <= t + offset + right that are real.
/// A query that sees none has the output 0 and no gradient.
struct SoftmaxCall {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
  at::Tensor key_mask;  ///< [B, S] bool, true where real; undefined = all are
  double scale = 1;
  std::int64_t left = unlimited;
  std::int64_t right = unlimited;
  std::int64_t offset = 0;

  std::int64_t length() const { return q.size(2); }
  std::int64_t key_length() const { return k.size(2); }
  /// Whether every query sees every key, padding aside.
  bool sees_all() const;
  /// Whether there may be a query that sees no key.
  bool may_see_none() const;
  /// The same with zeros for padded keys and values: what stands there may be anything, and a
  /// weight of 0 does not make a number of a NaN.
  SoftmaxCall without_padding() const;
};

/// Scores, mask and weights as whole [B, H, T, S] tensors.
at::Tensor softmax_composite(const SoftmaxCall& call);

/// Rabe and Staats 2021: chunks of queries against chunks of keys, whose partial sums are combined.
/// Only the chunks of keys that some query of the chunk sees are computed. The backward pass
/// recomputes the weights from the logarithm of their sums, so no T x S matrix is ever kept.
at::Tensor softmax_chunked(const SoftmaxCall& call, std::int64_t query_chunk,
                           std::int64_t key_chunk);

/// The tiled kernel (attention/kernels/softmax.hpp): float32, float64 and bfloat16 on the CPU;
/// float32, bfloat16 and float16 on a CUDA device.
at::Tensor softmax_tiled(const SoftmaxCall& call);
/// Whether it does `problem` with this many keys, and the workspace of its forward pass.
Support tiled_supports(const Problem& problem, const kernels::SoftmaxSizes& sizes);
double tiled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes);
/// Growth::from_length of its workspace: below, an item of a band's queries is not yet full.
inline constexpr std::int64_t kGrowingItems = 1024;

}  // namespace attnbench
