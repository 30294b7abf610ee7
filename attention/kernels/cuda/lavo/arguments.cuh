// What the running memory's kernels are given.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/lavo/plan.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda {

template <class T>
struct MemoryArguments {
  Rows<const T> query, tokens, bases;
  Rows<T> out;
  const std::uint8_t* mask = nullptr;
  std::int64_t mask_stride = 0;
  int heads = 1;  ///< of a batch row
  int count = 0;  ///< bases
  int dim = 0;
  bool windows = false;    ///< MemoryOrder::windows
  bool inclusive = false;  ///< MemoryOrder::each_token: a token is read by its own query
  bool whole = false;      ///< MemoryOrder::all
  bool averaged = false, alone = false;
  float scale = 1;  ///< log2(e) included
  /// Whether rows can be moved by pieces of 16 bytes.
  bool query_pieces = false, token_pieces = false, base_pieces = false, out_pieces = false;
  MemoryPlan plan;
  float* sums = nullptr;             ///< [slots, segments, dim]: of the tokens of a segment
  int* counts = nullptr;             ///< [batch, segments]
  MemoryCarry<float> before, after;  ///< `before` is read by all, `after` is not
};

/// What the backward pass has beside.
template <class T>
struct MemoryGradientArguments {
  Rows<const T> d_out;
  Rows<T> d_query, d_tokens;
  bool d_out_pieces = false;   ///< as those of MemoryArguments
  float* grads = nullptr;      ///< [slots, length, count]: du / tokens read
  float* grad_sums = nullptr;  ///< [slots, reading segments, count]
  int* read = nullptr;         ///< [batch, length]: tokens that a query reads
  /// The bases' gradient, of what queries read and of what tokens leave, a part for each segment:
  /// [slots, segments, count, dim].
  float* of_reading = nullptr;
  float* of_tokens = nullptr;
};

}  // namespace attnbench::kernels::cuda
