// The inner loop of the recurrent families: a memory S [rows, columns] takes in one token after
// another and is read after each,
//   S_t = S_{t-1} + e_t v_t^T,   o_t = p_t S_t,
// for a block of tokens at a time, while a tile of S stays in registers. 4 rows columns operations
// a token, no more, where the products of a chunk spend 2 C (rows + columns) beside them. Forwards
// it is the families' own recurrence; their gradients are the same sum over other operands,
// forwards or backwards in time.
#pragma once

#include <cstdint>

#include "attention/kernels/cpu/product/prefetch.hpp"
#include "attention/kernels/cpu/recurrent/panels.hpp"

namespace attnbench::kernels {

/// Rows of the memory are padded to this many; those beyond are 0 and stay so.
constexpr std::int64_t latent_unit = 4;

/// What the memory is multiplied by before the first token: a factor for each row or each column.
enum class Decay { rows, columns };
/// The order in which the tokens of a block are taken in.
enum class Order { forwards, backwards };

/// A block of tokens: e and p [tokens, rows], v and o [tokens, columns].
/// `columns` is in whole vectors, `rows` a multiple of latent_unit. o is
/// written, not added to.
template <class R>
struct ScanBlock {
  std::int64_t tokens, rows, columns;
  Panels<const R> e, p, v;
  Panels<R> o;
  R* state;  ///< [rows, columns]
  std::int64_t state_stride;
  const R* decay;
  Prefetch* prefetch;          ///< what to fetch meanwhile
  bool continued = false;      ///< o is added to
  const R* factors = nullptr;  ///< what o is multiplied by at the end, one for each token; forwards
                               ///< with a decay of rows
};

/// For float and double, vectors of 16, 32 and 64 bytes.
template <class R, int Bytes, Decay Decays, Order Time>
void scan(const ScanBlock<R>& block);

/// The same of a single token, forwards with a decay of rows: then moving the memory is all the
/// work, so it is gone through row by row, as it lies.
template <class R, int Bytes>
void scan_token(const ScanBlock<R>& block);

}  // namespace attnbench::kernels
