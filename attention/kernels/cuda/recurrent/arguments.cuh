// What the kernels of the recurrent families are given.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/recurrent/plan.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda {

/// Whether rows of `width` 16-bit numbers can be moved by pieces of 16 bytes.
template <class T>
bool by_pieces(const Rows<T>& rows, std::int64_t width) {
  const std::int64_t strides = rows.batch_stride | rows.head_stride | rows.row_stride | width;
  return strides % 8 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
}

/// What the past comes down to, dense. Null pointers: nothing.
struct RecurrentState {
  float* sum = nullptr;      ///< [slots, latents, value_dim]
  float* total = nullptr;    ///< [slots, latents]: the sum of the keys' weights
  float* maximum = nullptr;  ///< [slots, latents], in powers of two but for a caller's carry
};

template <class T>
struct RecurrentArguments {
  Rows<const T> query, key, values;
  Rows<T> out;
  Rows<const float> log_decay;  ///< [batch, heads, length, 1], of a decaying product alone
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1;  ///< of a batch row
  int length = 0, latents = 0, value_dim = 0;
  int slices = 1, segments = 1, segment_chunks = 0;
  bool folded = true;
  /// Whether rows can be moved by pieces of 16 bytes.
  bool query_pieces = false, key_pieces = false, value_pieces = false, out_pieces = false;
  int kind = 0;             ///< ProductFeature or PoolQuery
  bool normalised = false;  ///< results are divided by the sum of their weights
  bool tracked = false;     ///< whether the sum of the keys' weights is kept
  float scale = 1;          ///< log2(e) included
  float epsilon = 0;
  RecurrentState before, after;  ///< one slot a head; `before` is read by all, `after` is not
  /// A slot for each border between segments of each head: the states of the segments alone, or
  /// (not folded) of all tokens before the border.
  RecurrentState borders;
};

}  // namespace attnbench::kernels::cuda
