// LAVO's orthogonal memory: a context is kept as its mean's coordinates u along r bases,
// of which a query reads
//   y_t = sum_j softmax_j(scale (b_j . q_t) u_j) u_j b_j,   u = B mean(x).
// "Linear Attention Via Orthogonal memory" (2023), equations 3 and 4, sections 3.1 and 3.2. See
// softmax.hpp for the shape of a kernel family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

/// What query t reads the mean of: the tokens up to t; those of the windows that ended before t's
/// own began; or all of them, of a sequence of its own.
enum class MemoryOrder { each_token, windows, all };

struct LavoSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 0;
  /// Tokens that are remembered: `length`, but where all of them are read.
  std::int64_t memory_length = 0;
  std::int64_t bases = 1;  ///< r
  std::int64_t head_dim = 0;
  MemoryOrder order = MemoryOrder::each_token;
  std::int64_t window = 1;  ///< tokens of a window
  std::int64_t phase = 0;   ///< the first token's place in its window
  /// The result is the mean of token t itself and of what query t reads; as many tokens as queries.
  bool averaged = false;
  /// Windows, averaged: a query that has nothing to read keeps all of its token.
  bool alone = false;
  double scale = 1;
};

/// What the past comes down to, dense, computed as Compute<T>. Null pointers: nothing came before,
/// and nothing is kept. Not for MemoryOrder::all.
template <class R>
struct MemoryCarry {
  R* mean = nullptr;                  ///< u [batch, heads, bases]; 0 before the first token
  std::int64_t* count = nullptr;      ///< [batch]: tokens remembered
  R* sum = nullptr;                   ///< windows: [batch, heads, head_dim] of the window begun
  std::int64_t* sum_count = nullptr;  ///< windows: [batch]: its tokens
};

template <class T>
struct LavoArguments {
  Rows<const T> query;   ///< [batch, heads, length, head_dim]
  Rows<const T> tokens;  ///< [batch, heads, memory_length, head_dim]
  Rows<const T> bases;   ///< [1, heads, bases, head_dim]
  /// [batch, memory_length], rows apart by mask_stride; 0 hides the token. Null = all are real.
  const std::uint8_t* key_mask = nullptr;
  std::int64_t mask_stride = 0;
  Rows<T> out;  ///< [batch, heads, length, head_dim]; may be `tokens` where they are averaged
  /// Continued from and advanced in place.
  MemoryCarry<Compute<T>> carry;
};

template <class T>
std::size_t lavo_forward_bytes(const LavoSizes& sizes, int threads);
template <class T>
void lavo_forward(const LavoSizes& sizes, const LavoArguments<T>& arguments, ThreadTeam& team,
                  void* workspace, std::size_t workspace_bytes);

/// Gradients with respect to query, tokens and bases, from that of `out`. Everything is computed
/// anew from the inputs; a carry is not taken into account. Gradients are written, not added to.
template <class T>
struct LavoGradients {
  Rows<const T> d_out;
  Rows<T> d_query;
  Rows<T> d_tokens;
  Compute<T>* d_bases = nullptr;  ///< [heads, bases, head_dim], dense
};

template <class T>
std::size_t lavo_backward_bytes(const LavoSizes& sizes, int threads);
template <class T>
void lavo_backward(const LavoSizes& sizes, const LavoArguments<T>& arguments,
                   const LavoGradients<T>& gradients, ThreadTeam& team, void* workspace,
                   std::size_t workspace_bytes);

}  // namespace attnbench::kernels
