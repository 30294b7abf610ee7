// GS, the gated state, on the CPU: what retention, gated linear attention, Mamba-2, the delta rule
// and RWKV-7 are made of,
//   S_t = (I - beta_t k_t k_t^T) diag(exp g_t) S_{t-1} + k_t v_t^T,   y_t = S_t^T q_t,
// with S_t [rows, width]; or, with a removal key r_t of its own, by which m_t is erased,
//   S_t = (diag(exp g_t) - m_t r_t^T) S_{t-1} + k_t v_t^T.
// The forms are those of attention/algorithms/gated_state/gated_state.hpp.
// Every token is computed by this recurrence, so that gates of any strength are right; without an
// erasure and with one decay for all rows or none it is the causal product (causal_product.hpp).
// See softmax.hpp for the shape of a kernel family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

struct GatedStateSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 0;
  std::int64_t rows = 0;   ///< of the state: the width of queries and keys
  std::int64_t width = 0;  ///< of values and outputs
  std::int64_t gates = 0;  ///< log decays of a token: none, 1 or `rows`
  bool erases = false;     ///< whether there is a beta
  double scale = 1;        ///< of results, of a causal product with a decay; else 1
  bool removes = false;    ///< whether there is a removal key: then no beta, and `rows` gates

  /// Whether this is the causal product, and its sizes.
  bool is_product() const { return !erases && !removes && gates <= 1; }
  CausalProductSizes product() const {
    CausalProductSizes sizes;
    sizes.batch = batch;
    sizes.heads = heads;
    sizes.length = length;
    sizes.features = rows;
    sizes.value_dim = width;
    sizes.decays = gates == 1;
    sizes.scale = scale;
    return sizes;
  }
};

/// For float and double.
template <class R>
struct GatedStateArguments {
  Rows<const R> query;      ///< [batch, heads, length, rows]
  Rows<const R> key;        ///< [batch, heads, length, rows]
  Rows<const R> values;     ///< [batch, heads, length, width]
  Rows<const R> log_decay;  ///< [batch, heads, length, gates], at most 0; may be -inf
  Rows<const R> beta;       ///< [batch, heads, length, 1]
  Rows<const R> removal;    ///< r, the removal key [batch, heads, length, rows]
  Rows<const R> erased;     ///< m, what it erases [batch, heads, length, rows]
  Rows<R> out;              ///< [batch, heads, length, width], apart from the inputs
  /// [batch, heads, rows, width], dense; continued from and advanced in place. Null: nothing came
  /// before, and nothing is kept.
  R* memory = nullptr;

  /// The arguments of the causal product within.
  CausalProductArguments<R> product() const {
    CausalProductArguments<R> arguments;
    arguments.query = query;
    arguments.key = key;
    arguments.values = values;
    arguments.log_decay = log_decay;
    arguments.out = out;
    arguments.memory = memory;
    return arguments;
  }
};

template <class R>
std::size_t gated_state_forward_bytes(const GatedStateSizes& sizes, int threads);
template <class R>
void gated_state_forward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                         ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

/// Gradients with respect to query, key, values, beta, removal and erased, from that of `out`,
/// without a memory. The gradients of the log decays follow from them: with e_t = q_t dq_t - k_t
/// dk_t or, of an erasure, e_t = q_t dq_t + k_t (2 d_read_t - dk_t) or, with a removal key,
/// e_t = q_t dq_t - k_t dk_t - m_t dm_t + r_{t+1} dr_{t+1}, row by row, the gradient of g_t is the
/// sum of e_s over s >= t. Gradients are written, not added to, apart from the inputs.
template <class R>
struct GatedStateGradients {
  Rows<const R> d_out;
  Rows<R> d_query;
  Rows<R> d_key;
  Rows<R> d_values;
  Rows<R> d_beta = {};  ///< of an erasure, as `d_read`
  Rows<R> d_read = {};  ///< the part of d_key by what the key finds; [batch, heads, length, rows]
  Rows<R> d_removal = {};  ///< with a removal key, as `d_erased`
  Rows<R> d_erased = {};   ///< [batch, heads, length, rows]
};

template <class R>
std::size_t gated_state_backward_bytes(const GatedStateSizes& sizes, int threads);
template <class R>
void gated_state_backward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                          const GatedStateGradients<R>& gradients, ThreadTeam& team,
                          void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
