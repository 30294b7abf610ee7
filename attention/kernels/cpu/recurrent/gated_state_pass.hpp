// One pass over the tokens of a head with a state of `rows` times `columns` numbers,
//   s_ij = decay s_ij + b_ti c_tj,   out_tj = sum_i e_ti s_ij,
// where the decay is one of the token, of the row i or of the column j; and the same from the last
// token to the first, where a token's decay acts after its output. Forward it is the gated state
// itself; its gradients are three more passes, two of them with a state that is transposed.
//
// A removal key reads the state before it decays and erases after that, in either direction; see
// GatedRemoval.
#pragma once

#include <initializer_list>

#include "attention/kernels/gated_state.hpp"

namespace attnbench::kernels {

enum class Gate { none, token, row, column };

/// What a removal key does around a token's decay: before it out_tj = sum_i e_ti s_ij is read,
/// after it b_ti c_tj is added. With S_t = diag(a_t) S_{t-1} + m_t n_t^T + ..., n_t = -S_{t-1}^T
/// r_t, and its gradient G_{t-1} = diag(a_t) G_t + r_t z_t^T + ..., z_t = -G_t^T m_t, that is so
/// for S, G and both transposed.
template <class R>
struct GatedRemoval {
  Rows<const R> b, e;  ///< [., ., length, rows]
  Rows<const R> c;     ///< [., ., length, columns]; null = minus what `e` reads of the same token
  Rows<R> out;         ///< [., ., length, columns]; what is read or, without c, minus that
};

template <class R>
struct GatedPass {
  std::int64_t heads, length, rows, columns;
  Gate gate = Gate::none;
  bool backwards = false;
  bool writes = false;      ///< of an erasure: the output is what each token wrote
  Rows<const R> b, e;       ///< [., ., length, rows]
  Rows<const R> c;          ///< [., ., length, columns]
  Rows<const R> log_decay;  ///< [., ., length, 1, rows or columns]
  Rows<const R> beta;       ///< of an erasure, [., ., length, 1]
  GatedRemoval<R> removal;  ///< by a removal key, with a decay of rows or of columns
  Rows<R> out;              ///< [., ., length, columns]; null = not kept
  R* memory;                ///< [batch, heads, rows, columns]; null = none

  bool removes() const { return removal.e.data != nullptr; }
  /// Whether a token must have read the whole state before it writes.
  bool finds() const { return removes() && removal.c.data == nullptr; }
};

/// The pass whose state is S: rows are of `rows`, columns of `width`.
template <class R>
GatedPass<R> gated_pass(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                        bool transposed, bool backwards) {
  GatedPass<R> pass{};
  pass.heads = sizes.heads;
  pass.length = sizes.length;
  pass.rows = transposed ? sizes.width : sizes.rows;
  pass.columns = transposed ? sizes.rows : sizes.width;
  pass.gate = sizes.gates == 0                     ? Gate::none
              : sizes.gates == 1 && !sizes.removes ? Gate::token
              : transposed                         ? Gate::column
                                                   : Gate::row;
  pass.backwards = backwards;
  pass.log_decay = arguments.log_decay;
  return pass;
}

/// Bytes of a worker's block, for a state of so many rows.
template <class R>
std::size_t gated_pass_bytes(std::int64_t rows, bool removes);
/// Runs several passes over the same heads, so that all keep the workers busy. The workspace has
/// the bytes of the greatest of them for each worker.
template <class R>
void run_gated_passes(const GatedStateSizes& sizes, std::initializer_list<GatedPass<R>> passes,
                      ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
