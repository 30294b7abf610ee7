#include "attention/kernels/gated_state.hpp"

#include "attention/kernels/cpu/recurrent/gated_erasure.hpp"
#include "attention/kernels/cpu/recurrent/gated_state_pass.hpp"

namespace attnbench::kernels {
namespace {

template <class R, int Bytes, Gate gate, bool backwards>
ATTNBENCH_INLINE void gated_block_of(const GatedBlock<R>& block, std::int64_t tokens,
                                     std::int64_t vectors, R* state, std::int64_t stride) {
  // As many vectors as leave registers for the rows of the state.
  constexpr int most = has_32_registers<Bytes> ? 4 : 2;
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  in_runs<most>(vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t row = 0; row < block.rows; row += gated_rows) {
      gated_tile<R, Bytes, decltype(count)::value, gate, backwards>(
          block, tokens, row, first * lanes, state + row * stride + first * lanes, stride);
    }
  });
}

template <class R, int Bytes>
void gated_blocks(const GatedPass<R>& pass, const GatedBlock<R>& block, std::int64_t tokens,
                  std::int64_t vectors, R* state, std::int64_t stride) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    const auto run = [&](auto gate) ATTNBENCH_INLINE_LAMBDA {
      constexpr Gate kind = decltype(gate)::value;
      if (pass.backwards) {
        gated_block_of<R, Bytes, kind, true>(block, tokens, vectors, state, stride);
      } else {
        gated_block_of<R, Bytes, kind, false>(block, tokens, vectors, state, stride);
      }
    };
    switch (pass.gate) {
      case Gate::none:
        return run(std::integral_constant<Gate, Gate::none>{});
      case Gate::token:
        return run(std::integral_constant<Gate, Gate::token>{});
      case Gate::row:
        return run(std::integral_constant<Gate, Gate::row>{});
      case Gate::column:
        return run(std::integral_constant<Gate, Gate::column>{});
    }
  });
}

template <class R, int Bytes>
void gated_item(const GatedPass<R>& pass, const GatedItem& item, Workspace& space) {
  const GatedBlock<R> block(space, pass.rows);
  constexpr std::int64_t columns = gated_columns<R>;
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  // A memory whose rows and columns need no padding is advanced where it lies.
  R* const carried =
      pass.memory == nullptr
          ? nullptr
          : pass.memory + ((item.b * pass.heads + item.h) * pass.rows) * pass.columns + item.column;
  const bool in_place = carried != nullptr && block.rows == pass.rows && item.count % lanes == 0;
  R* const state = in_place ? carried : block.state;
  const std::int64_t stride = in_place ? pass.columns : columns;
  if (!in_place) {
    std::fill_n(block.state, block.rows * columns, R{0});
    for (std::int64_t i = 0; carried != nullptr && i < pass.rows; ++i) {
      std::copy_n(carried + i * pass.columns, item.count, block.state + i * columns);
    }
  }
  const std::int64_t vectors = (item.count + lanes - 1) / lanes;
  for (std::int64_t done = 0; done < pass.length;) {
    const std::int64_t tokens = std::min(gated_block, pass.length - done);
    const std::int64_t t0 = pass.backwards ? pass.length - done - tokens : done;
    Apart<Bytes>::call(
        [&]() ATTNBENCH_INLINE_LAMBDA { open_gated<R, Bytes>(pass, item, t0, tokens, block); });
    if (pass.beta.data != nullptr) {
      erase_gated<R, Bytes>(pass, item, t0, tokens, vectors, block, state, stride);
    } else {
      gated_blocks<R, Bytes>(pass, block, tokens, vectors, state, stride);
    }
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::copy_n(block.out + t * columns, item.count,
                  pass.out.at(item.b, item.h, t0 + t) + item.column);
    }
    done += tokens;
  }
  if (in_place || carried == nullptr) return;
  for (std::int64_t i = 0; i < pass.rows; ++i) {
    std::copy_n(block.state + i * columns, item.count, carried + i * pass.columns);
  }
}

template <class R>
std::size_t item_bytes(std::int64_t rows) {
  Workspace count;
  GatedBlock<R>(count, rows);
  return count.used();
}

template <class R>
using GatedFunction = void (*)(const GatedPass<R>&, const GatedItem&, Workspace&);

/// Runs the items of several passes over the same heads, so that all keep the workers busy.
template <class R>
void run_passes(const GatedStateSizes& sizes, std::initializer_list<GatedPass<R>> passes,
                ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  const GatedFunction<R> run = pick<GatedFunction<R>>(
      gated_item<R, baseline_bytes>, gated_item<R, avx2_bytes>, gated_item<R, avx512_bytes>);
  const std::size_t each = workspace_bytes / static_cast<std::size_t>(team.size()) /
                           Workspace::alignment * Workspace::alignment;
  const auto slices = [](const GatedPass<R>& pass) {
    return (pass.columns + gated_columns<R> - 1) / gated_columns<R>;
  };
  std::int64_t in_head = 0;
  for (const GatedPass<R>& pass : passes) in_head += slices(pass);
  share(team, sizes.batch * sizes.heads * in_head, [&](int worker, std::int64_t index) {
    const std::int64_t head = index / in_head;
    std::int64_t slice = index % in_head;
    const GatedPass<R>* pass = passes.begin();
    while (slice >= slices(*pass)) slice -= slices(*pass++);
    const std::int64_t column = slice * gated_columns<R>;
    Workspace own(static_cast<std::byte*>(workspace) + static_cast<std::size_t>(worker) * each,
                  each);
    run(*pass,
        {head / sizes.heads, head % sizes.heads, column,
         std::min(gated_columns<R>, pass->columns - column)},
        own);
  });
}

/// The pass whose state is S: rows are of `rows`, columns of `width`.
template <class R>
GatedPass<R> pass_of(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                     bool transposed, bool backwards) {
  GatedPass<R> pass{};
  pass.heads = sizes.heads;
  pass.length = sizes.length;
  pass.rows = transposed ? sizes.width : sizes.rows;
  pass.columns = transposed ? sizes.rows : sizes.width;
  pass.gate = sizes.gates == 0   ? Gate::none
              : sizes.gates == 1 ? Gate::token
              : transposed       ? Gate::column
                                 : Gate::row;
  pass.backwards = backwards;
  pass.log_decay = arguments.log_decay;
  return pass;
}

// ---- the gradient of an erasure

template <class R>
Rows<const R> read_only(const Rows<R>& rows) {
  return {rows.data, rows.batch_stride, rows.head_stride, rows.row_stride};
}

/// What the passes of the gradient leave for one another.
template <class R>
struct ErasureArrays {
  Rows<R> written;    ///< u_t = v_t - beta_t h_t, [., ., length, width]
  Rows<R> erased;     ///< -beta_t k_t, [., ., length, rows]
  Rows<R> by_erased;  ///< the part of d_key by what later tokens erase, [., ., length, rows]

  ErasureArrays(Workspace& space, const GatedStateSizes& sizes) {
    const auto take = [&](std::int64_t width) {
      const std::int64_t head = sizes.length * width;
      return Rows<R>{space.take<R>(sizes.batch * sizes.heads * head), sizes.heads * head, head,
                     width};
    };
    written = take(sizes.width);
    erased = take(sizes.rows);
    by_erased = take(sizes.rows);
  }
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
  const std::size_t items =
      static_cast<std::size_t>(team.size()) * item_bytes<R>(std::max(sizes.rows, sizes.width));
  Workspace space(static_cast<std::byte*>(workspace) + items, workspace_bytes - items);
  const ErasureArrays<R> arrays(space, sizes);
  GatedPass<R> write = pass_of(sizes, arguments, false, false);
  write.b = arguments.key;
  write.e = arguments.query;
  write.c = arguments.values;
  write.beta = arguments.beta;
  write.writes = true;
  write.out = arrays.written;
  GatedPass<R> values = pass_of(sizes, arguments, false, true);
  values.b = arguments.key;
  values.e = arguments.query;
  values.c = gradients.d_out;
  values.beta = arguments.beta;
  values.out = gradients.d_values;
  run_passes(sizes, {write, values}, team, workspace, items);
  each_token(sizes, team, [&](std::int64_t b, std::int64_t h, std::int64_t t) {
    const R beta = arguments.beta.at(b, h, t)[0];
    const R* const key = arguments.key.at(b, h, t);
    R* const erased = arrays.erased.at(b, h, t);
    for (std::int64_t i = 0; i < sizes.rows; ++i) erased[i] = -beta * key[i];
  });
  GatedPass<R> query = pass_of(sizes, arguments, true, false);
  query.b = read_only(arrays.written);
  query.c = arguments.key;
  query.e = gradients.d_out;
  query.out = gradients.d_query;
  GatedPass<R> read = query;  // S_t w_t
  read.e = read_only(gradients.d_values);
  read.out = gradients.d_read;
  GatedPass<R> key = pass_of(sizes, arguments, true, true);
  key.b = gradients.d_out;
  key.c = arguments.query;
  key.e = read_only(arrays.written);
  key.out = gradients.d_key;
  GatedPass<R> by_erased = key;
  by_erased.b = read_only(gradients.d_values);
  by_erased.c = read_only(arrays.erased);
  by_erased.out = arrays.by_erased;
  run_passes(sizes, {query, read, key, by_erased}, team, workspace, items);
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

}  // namespace

template <class R>
std::size_t gated_state_forward_bytes(const GatedStateSizes& sizes, int threads) {
  if (sizes.is_product()) {
    return causal_product_forward_bytes<R>(sizes.product(), threads);
  }
  return static_cast<std::size_t>(threads) * item_bytes<R>(sizes.rows);
}

template <class R>
void gated_state_forward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                         ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  if (sizes.is_product()) {
    causal_product_forward(sizes.product(), arguments.product(), team, workspace, workspace_bytes);
    return;
  }
  GatedPass<R> pass = pass_of(sizes, arguments, false, false);
  pass.b = arguments.key;
  pass.e = arguments.query;
  pass.c = arguments.values;
  pass.out = arguments.out;
  pass.memory = arguments.memory;
  if (sizes.erases) pass.beta = arguments.beta;
  run_passes(sizes, {pass}, team, workspace, workspace_bytes);
}

template <class R>
std::size_t gated_state_backward_bytes(const GatedStateSizes& sizes, int threads) {
  if (sizes.is_product()) {
    return causal_product_backward_bytes<R>(sizes.product(), threads);
  }
  Workspace count;
  if (sizes.erases) ErasureArrays<R>(count, sizes);
  return static_cast<std::size_t>(threads) * item_bytes<R>(std::max(sizes.rows, sizes.width)) +
         count.used();
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
  // dq_t = S_t dy_t; dv_t = P_t^T k_t and dk_t = P_t v_t with P_t = sum of q_s dy_s^T, s >= t,
  // decayed from s back to t.
  GatedPass<R> query = pass_of(sizes, arguments, true, false);
  query.b = arguments.values;
  query.c = arguments.key;
  query.e = gradients.d_out;
  query.out = gradients.d_query;
  GatedPass<R> key = pass_of(sizes, arguments, true, true);
  key.b = gradients.d_out;
  key.c = arguments.query;
  key.e = arguments.values;
  key.out = gradients.d_key;
  GatedPass<R> values = pass_of(sizes, arguments, false, true);
  values.b = arguments.query;
  values.c = gradients.d_out;
  values.e = arguments.key;
  values.out = gradients.d_values;
  run_passes(sizes, {query, key, values}, team, workspace, workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(R)                                                               \
  template std::size_t gated_state_forward_bytes<R>(const GatedStateSizes&, int);              \
  template void gated_state_forward<R>(const GatedStateSizes&, const GatedStateArguments<R>&,  \
                                       ThreadTeam&, void*, std::size_t);                       \
  template std::size_t gated_state_backward_bytes<R>(const GatedStateSizes&, int);             \
  template void gated_state_backward<R>(const GatedStateSizes&, const GatedStateArguments<R>&, \
                                        const GatedStateGradients<R>&, ThreadTeam&, void*,     \
                                        std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)

}  // namespace attnbench::kernels
