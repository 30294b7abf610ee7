// Softmax attention in tiles, never holding a T x S matrix: Dao et al. 2022 (FlashAttention), with
// the online softmax of Milakov and Gimelshein 2018.
//
// The shape of every kernel family here:
// - `…Sizes` are plain numbers, `…Arguments` are pointers with strides; neither owns anything.
// - A function tells the bytes of workspace; the caller provides them, aligned to 64 bytes and not
//   initialised, so that they are counted where memory is counted.
// - The caller lends a ThreadTeam. Work is cut into items whose result does not depend on which
//   thread computes them or in which order: the same bits every time for one size of team.
// - Numbers are stored as T (float, double, BFloat16) and computed as Compute<T>.
// - Nothing here throws, but for std::logic_error where a workspace is too small.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

/// Query t sits on key t + offset and sees the keys s, 0 <= s < key_length, with
/// t + offset - left <= s <= t + offset + right. Sides that do not end are `far`.
struct SoftmaxSizes {
  static constexpr std::int64_t far = std::int64_t{1} << 40;

  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;  ///< a divisor of heads; head h reads kv head h / (heads / kv_heads)
  std::int64_t length = 0;
  std::int64_t key_length = 0;
  std::int64_t head_dim = 0;
  std::int64_t value_dim = 0;
  std::int64_t left = far;
  std::int64_t right = far;
  std::int64_t offset = 0;
  double scale = 1;  ///< the logit is scale * q.k, plus the bias
  /// Distances s - t - offset from -bias_reach to bias_reach have a bias, which the band must not
  /// leave; -1 = there is none.
  std::int64_t bias_reach = -1;

  /// The keys from `first_key(t)` to `last_key(t)`, inclusive, are those that query t sees.
  constexpr std::int64_t first_key(std::int64_t t) const {
    return t + offset > left ? t + offset - left : 0;
  }
  constexpr std::int64_t last_key(std::int64_t t) const {
    return t + offset + right < key_length - 1 ? t + offset + right : key_length - 1;
  }
};

template <class T>
struct SoftmaxArguments {
  Rows<const T> q;  ///< [batch, heads, length, head_dim]
  Rows<const T> k;  ///< [batch, kv_heads, key_length, head_dim]
  Rows<const T> v;  ///< [batch, kv_heads, key_length, value_dim]
  /// [batch, key_length], rows apart by mask_stride; 0 hides the key. Null = all are real.
  const std::uint8_t* key_mask = nullptr;
  std::int64_t mask_stride = 0;
  const Compute<T>* bias = nullptr;  ///< [2 bias_reach + 1], shared by the heads
  Rows<T> out;                       ///< [batch, heads, length, value_dim]
  /// [batch, heads, length], dense: the natural logarithm of the sum of exponentials, +infinity
  /// for a query that sees no key (its output is 0). The forward pass writes it if not null.
  Compute<T>* lse = nullptr;
};

template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes, int threads);
template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

/// Gradients with respect to q, k and v, from that of `out`. Recomputes the weights from lse, which
/// the forward pass has written, and reads `out`. Gradients are written, not added to.
template <class T>
struct SoftmaxGradients {
  Rows<const T> d_out;
  Rows<T> dq;
  Rows<T> dk;
  Rows<T> dv;
  Compute<T>* d_bias = nullptr;  ///< [2 bias_reach + 1]; not null where there is a bias
};

template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes, int threads);
template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, ThreadTeam& team, void* workspace,
                      std::size_t workspace_bytes);

}  // namespace attnbench::kernels
