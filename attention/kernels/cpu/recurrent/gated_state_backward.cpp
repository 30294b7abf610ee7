// The gradients of the gated state, by passes over it and over its own gradient.
#include <algorithm>

#include "attention/kernels/cpu/recurrent/gated_state_pass.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {
namespace {

template <class R>
Rows<const R> read_only(const Rows<R>& rows) {
  return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
}

template <class R>
Rows<R> take_rows(Workspace& space, const GatedStateSizes& sizes, std::int64_t width) {
  const std::int64_t head = sizes.length * width;
  return {space.take<R>(sizes.batch * sizes.heads * head), sizes.heads * head, head, width};
}

/// Of each worker: passes have states of `rows` rows and of `width`.
template <class R>
std::size_t worker_bytes(const GatedStateSizes& sizes) {
  return gated_pass_bytes<R>(std::max(sizes.rows, sizes.width), sizes.removes);
}

// ---- the gradient of an erasure

/// What the passes of the gradient leave for one another.
template <class R>
struct ErasureArrays {
  Rows<R> written;    ///< u_t = v_t - beta_t h_t, [., ., length, width]
  Rows<R> erased;     ///< -beta_t k_t, [., ., length, rows]
  Rows<R> by_erased;  ///< the part of d_key by what later tokens erase, [., ., length, rows]

  ErasureArrays(Workspace& space, const GatedStateSizes& sizes)
      : written(take_rows<R>(space, sizes, sizes.width)),
        erased(take_rows<R>(space, sizes, sizes.rows)),
        by_erased(take_rows<R>(space, sizes, sizes.rows)) {}
};

template <class R>
R product(const R* a, const R* b, std::int64_t count) {
  R sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// Calls body(b, h, t) for every token of every head, heads side by side.
template <class Body>
void each_token(const GatedStateSizes& sizes, ThreadTeam& team, const Body& body) {
  share(team, sizes.batch * sizes.heads, [&](int, std::int64_t head) {
    for (std::int64_t t = 0; t < sizes.length; ++t) body(head / sizes.heads, head % sizes.heads, t);
  });
}

/// With u_t what is written, w_t its gradient (which is that of the values) and G_t that of S_t:
///   dq_t = S_t dy_t,   dk_t = G_t u_t - beta_t D_t w_t,   dbeta_t = -w_t^T D_t^T k_t
/// for D_t = S_t - k_t u_t^T, the state that the key finds. S is a gated state that u is written
/// to, and G one to which q_t dy_t^T is written before it is read and -beta_t k_t w_t^T after.
template <class R>
void erasing_backward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                      const GatedStateGradients<R>& gradients, ThreadTeam& team, void* workspace,
                      std::size_t workspace_bytes) {
  const std::size_t items = static_cast<std::size_t>(team.size()) * worker_bytes<R>(sizes);
  Workspace space(static_cast<std::byte*>(workspace) + items, workspace_bytes - items);
  const ErasureArrays<R> arrays(space, sizes);
  GatedPass<R> write = gated_pass(sizes, arguments, false, false);
  write.b = arguments.key;
  write.e = arguments.query;
  write.c = arguments.values;
  write.beta = arguments.beta;
  write.writes = true;
  write.out = arrays.written;
  GatedPass<R> values = gated_pass(sizes, arguments, false, true);
  values.b = arguments.key;
  values.e = arguments.query;
  values.c = gradients.d_out;
  values.beta = arguments.beta;
  values.out = gradients.d_values;
  run_gated_passes(sizes, {write, values}, team, workspace, items);
  each_token(sizes, team, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const R beta = arguments.beta.at(b, h, t)[0];
    const R* const key = arguments.key.at(b, h, t);
    R* const erased = arrays.erased.at(b, h, t);
    for (std::int64_t i = 0; i < sizes.rows; ++i) erased[i] = -beta * key[i];
  });
  GatedPass<R> query = gated_pass(sizes, arguments, true, false);
  query.b = read_only(arrays.written);
  query.c = arguments.key;
  query.e = gradients.d_out;
  query.out = gradients.d_query;
  GatedPass<R> read = query;  // S_t w_t
  read.e = read_only(gradients.d_values);
  read.out = gradients.d_read;
  GatedPass<R> key = gated_pass(sizes, arguments, true, true);
  key.b = gradients.d_out;
  key.c = arguments.query;
  key.e = read_only(arrays.written);
  key.out = gradients.d_key;
  GatedPass<R> by_erased = key;
  by_erased.b = read_only(gradients.d_values);
  by_erased.c = read_only(arrays.erased);
  by_erased.out = arrays.by_erased;
  run_gated_passes(sizes, {query, read, key, by_erased}, team, workspace, items);
  // by_erased has the token's own erasure, which comes after its read, and `read` its own writing.
  each_token(sizes, team, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const R beta = arguments.beta.at(b, h, t)[0];
    const R* const k = arguments.key.at(b, h, t);
    const R* const later = arrays.by_erased.at(b, h, t);
    R* const found = gradients.d_read.at(b, h, t);
    R* const d_key = gradients.d_key.at(b, h, t);
    const R own = product(arrays.written.at(b, h, t), gradients.d_values.at(b, h, t), sizes.width);
    for (std::int64_t i = 0; i < sizes.rows; ++i) found[i] -= own * k[i];  // D_t w_t
    gradients.d_beta.at(b, h, t)[0] = -product<R>(k, found, sizes.rows);
    for (std::int64_t i = 0; i < sizes.rows; ++i) {
      found[i] *= -beta;
      d_key[i] += later[i] + beta * own * k[i] + found[i];
    }
  });
}

// ---- the gradient of a removal

/// What a removal key finds, [., ., length, width].
template <class R>
struct RemovalArrays {
  Rows<R> state;     ///< n_t = -S_{t-1}^T r_t
  Rows<R> gradient;  ///< z_t = -G_t^T m_t

  RemovalArrays(Workspace& space, const GatedStateSizes& sizes)
      : state(take_rows<R>(space, sizes, sizes.width)),
        gradient(take_rows<R>(space, sizes, sizes.width)) {}
};

/// With S_t = diag(a_t) S_{t-1} + m_t n_t^T + k_t v_t^T, G_t the gradient of S_t and
/// G_{t-1} = diag(a_t) G_t + r_t z_t^T + q_{t-1} dy_{t-1}^T, the same from the last token on:
///   dq_t = S_t dy_t,   dr_t = S_{t-1} z_t,   dk_t = G_t v_t,   dm_t = G_t n_t,   dv_t = G_t^T k_t.
template <class R>
void removing_backward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                       const GatedStateGradients<R>& gradients, ThreadTeam& team, void* workspace,
                       std::size_t workspace_bytes) {
  const std::size_t items = static_cast<std::size_t>(team.size()) * worker_bytes<R>(sizes);
  Workspace space(static_cast<std::byte*>(workspace) + items, workspace_bytes - items);
  const RemovalArrays<R> found(space, sizes);
  GatedPass<R> state = gated_pass(sizes, arguments, false, false);
  state.b = arguments.key;
  state.e = arguments.query;
  state.c = arguments.values;
  state.removal = {arguments.erased, arguments.removal, {}, found.state};
  GatedPass<R> values = gated_pass(sizes, arguments, false, true);
  values.b = arguments.query;
  values.e = arguments.key;
  values.c = gradients.d_out;
  values.out = gradients.d_values;
  values.removal = {arguments.removal, arguments.erased, {}, found.gradient};
  run_gated_passes(sizes, {state, values}, team, workspace, items);
  GatedPass<R> query = gated_pass(sizes, arguments, true, false);
  query.b = arguments.values;
  query.c = arguments.key;
  query.e = gradients.d_out;
  query.out = gradients.d_query;
  query.removal = {read_only(found.state), read_only(found.gradient), arguments.erased,
                   gradients.d_removal};
  GatedPass<R> key = gated_pass(sizes, arguments, true, true);
  key.b = gradients.d_out;
  key.c = arguments.query;
  key.e = arguments.values;
  key.out = gradients.d_key;
  key.removal = {read_only(found.gradient), read_only(found.state), arguments.removal,
                 gradients.d_erased};
  run_gated_passes(sizes, {query, key}, team, workspace, items);
}

}  // namespace

template <class R>
std::size_t gated_state_backward_bytes(const GatedStateSizes& sizes, int threads) {
  if (sizes.is_product()) {
    return causal_product_backward_bytes<R>(sizes.product(), threads);
  }
  Workspace count;
  if (sizes.erases) ErasureArrays<R>(count, sizes);
  if (sizes.removes) RemovalArrays<R>(count, sizes);
  return static_cast<std::size_t>(threads) * worker_bytes<R>(sizes) + count.used();
}

template <class R>
void gated_state_backward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                          const GatedStateGradients<R>& gradients, ThreadTeam& team,
                          void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  if (sizes.is_product()) {
    causal_product_backward<R>(
        sizes.product(), arguments.product(),
        {gradients.d_out, gradients.d_query, gradients.d_key, gradients.d_values}, team, workspace,
        workspace_bytes);
    return;
  }
  if (sizes.erases) {
    erasing_backward(sizes, arguments, gradients, team, workspace, workspace_bytes);
    return;
  }
  if (sizes.removes) {
    removing_backward(sizes, arguments, gradients, team, workspace, workspace_bytes);
    return;
  }
  // dq_t = S_t dy_t; dv_t = P_t^T k_t and dk_t = P_t v_t with P_t = sum of q_s dy_s^T, s >= t,
  // decayed from s back to t.
  GatedPass<R> query = gated_pass(sizes, arguments, true, false);
  query.b = arguments.values;
  query.c = arguments.key;
  query.e = gradients.d_out;
  query.out = gradients.d_query;
  GatedPass<R> key = gated_pass(sizes, arguments, true, true);
  key.b = gradients.d_out;
  key.c = arguments.query;
  key.e = arguments.values;
  key.out = gradients.d_key;
  GatedPass<R> values = gated_pass(sizes, arguments, false, true);
  values.b = arguments.query;
  values.c = gradients.d_out;
  values.e = arguments.key;
  values.out = gradients.d_values;
  run_gated_passes(sizes, {query, key, values}, team, workspace, workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(R)                                                               \
  template std::size_t gated_state_backward_bytes<R>(const GatedStateSizes&, int);             \
  template void gated_state_backward<R>(const GatedStateSizes&, const GatedStateArguments<R>&, \
                                        const GatedStateGradients<R>&, ThreadTeam&, void*,     \
                                        std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench::kernels
