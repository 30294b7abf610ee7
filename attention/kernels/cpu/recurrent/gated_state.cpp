#include "attention/kernels/gated_state.hpp"

#include "attention/kernels/cpu/recurrent/gated_erasure.hpp"
#include "attention/kernels/cpu/recurrent/gated_removal.hpp"

namespace attnbench::kernels {
namespace {

template <class R, int Bytes, Gate gate, bool backwards, bool removes = false>
ATTNBENCH_INLINE void gated_block_of(const GatedBlock<R>& block, std::int64_t tokens,
                                     std::int64_t vectors, R* state, std::int64_t stride) {
  // As many vectors as leave registers for the rows of the state.
  constexpr int most = (has_32_registers<Bytes> ? 4 : 2) / (removes ? 2 : 1);
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  in_runs<most>(vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t row = 0; row < block.rows; row += gated_rows) {
      gated_tile<R, Bytes, decltype(count)::value, gate, backwards, removes>(
          block, tokens, row, first * lanes, state + row * stride + first * lanes, stride);
    }
  });
}

/// A block whose removal adds what is known, with a decay of columns.
template <class R, int Bytes>
void removing_blocks(const GatedPass<R>& pass, const GatedBlock<R>& block, std::int64_t tokens,
                     std::int64_t vectors, R* state, std::int64_t stride) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    if (pass.backwards) {
      gated_block_of<R, Bytes, Gate::column, true, true>(block, tokens, vectors, state, stride);
    } else {
      gated_block_of<R, Bytes, Gate::column, false, true>(block, tokens, vectors, state, stride);
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

/// What a block read, to where it is kept, if it is.
template <class R>
void keep_gated(const R* from, const GatedItem& item, std::int64_t t0, std::int64_t tokens,
                const Rows<R>& kept) {
  if (kept.data == nullptr) return;
  R* to = kept.at(item.b, item.h, t0) + item.column;
  for (std::int64_t t = 0; t < tokens; ++t, from += gated_columns<R>, to += kept.row_stride) {
    std::copy_n(from, item.count, to);
  }
}

template <class R, int Bytes>
void gated_item(const GatedPass<R>& pass, const GatedItem& item, Workspace& space) {
  const GatedBlock<R> block(space, pass.rows, pass.removes());
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
    if (pass.removes()) {
      Apart<Bytes>::call(
          [&]() ATTNBENCH_INLINE_LAMBDA { open_removal<R, Bytes>(pass, item, t0, tokens, block); });
    }
    if (pass.beta.data != nullptr) {
      erase_gated<R, Bytes>(pass, item, t0, tokens, vectors, block, state, stride);
    } else if (pass.finds()) {
      remove_gated<R, Bytes>(pass, tokens, vectors, block, state, stride);
    } else if (pass.removes()) {
      removing_blocks<R, Bytes>(pass, block, tokens, vectors, state, stride);
    } else {
      gated_blocks<R, Bytes>(pass, block, tokens, vectors, state, stride);
    }
    keep_gated(block.out, item, t0, tokens, pass.out);
    keep_gated(block.removal.out, item, t0, tokens, pass.removal.out);
    done += tokens;
  }
  if (in_place || carried == nullptr) return;
  for (std::int64_t i = 0; i < pass.rows; ++i) {
    std::copy_n(block.state + i * columns, item.count, carried + i * pass.columns);
  }
}

template <class R>
using GatedFunction = void (*)(const GatedPass<R>&, const GatedItem&, Workspace&);

}  // namespace

template <class R>
std::size_t gated_pass_bytes(std::int64_t rows, bool removes) {
  Workspace count;
  GatedBlock<R>(count, rows, removes);
  return count.used();
}

template <class R>
void run_gated_passes(const GatedStateSizes& sizes, std::initializer_list<GatedPass<R>> passes,
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

template <class R>
std::size_t gated_state_forward_bytes(const GatedStateSizes& sizes, int threads) {
  if (sizes.is_product()) {
    return causal_product_forward_bytes<R>(sizes.product(), threads);
  }
  return static_cast<std::size_t>(threads) * gated_pass_bytes<R>(sizes.rows, sizes.removes);
}

template <class R>
void gated_state_forward(const GatedStateSizes& sizes, const GatedStateArguments<R>& arguments,
                         ThreadTeam& team, void* workspace, std::size_t workspace_bytes) {
  if (sizes.length == 0) return;
  if (sizes.is_product()) {
    causal_product_forward(sizes.product(), arguments.product(), team, workspace, workspace_bytes);
    return;
  }
  GatedPass<R> pass = gated_pass(sizes, arguments, false, false);
  pass.b = arguments.key;
  pass.e = arguments.query;
  pass.c = arguments.values;
  pass.out = arguments.out;
  pass.memory = arguments.memory;
  if (sizes.erases) pass.beta = arguments.beta;
  if (sizes.removes) pass.removal = {arguments.erased, arguments.removal, {}, {}};
  run_gated_passes(sizes, {pass}, team, workspace, workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(R)                                                                 \
  template std::size_t gated_pass_bytes<R>(std::int64_t, bool);                                  \
  template void run_gated_passes<R>(const GatedStateSizes&, std::initializer_list<GatedPass<R>>, \
                                    ThreadTeam&, void*, std::size_t);                            \
  template std::size_t gated_state_forward_bytes<R>(const GatedStateSizes&, int);                \
  template void gated_state_forward<R>(const GatedStateSizes&, const GatedStateArguments<R>&,    \
                                       ThreadTeam&, void*, std::size_t);
ATTNBENCH_INSTANTIATE(float)
ATTNBENCH_INSTANTIATE(double)
#undef ATTNBENCH_INSTANTIATE

}  // namespace attnbench::kernels
