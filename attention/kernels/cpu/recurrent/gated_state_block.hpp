// A pass by blocks of tokens (gated_state_pass.hpp): some rows of the state stay in registers for a
// block.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/recurrent/decay.hpp"
#include "attention/kernels/cpu/recurrent/gated_state_pass.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens of a block: with their columns of c and out they fit the first cache.
constexpr std::int64_t gated_block = 32;
/// Rows of the state that are in registers at once.
constexpr std::int64_t gated_rows = 4;
/// Columns of an item: those of four of the widest vectors.
template <class R>
constexpr std::int64_t gated_columns = 256 / static_cast<std::int64_t>(sizeof(R));

/// A block's numbers, padded: rows to `gated_rows`, columns to whole vectors.
template <class R>
struct GatedBlock {
  std::int64_t rows;
  R* b;      ///< [tokens, rows]
  R* e;      ///< [tokens, rows]
  R* c;      ///< [tokens, gated_columns]
  R* out;    ///< [tokens, gated_columns]
  R* decay;  ///< [tokens, rows], [tokens, gated_columns] or [tokens]
  R* state;  ///< [rows, gated_columns]
  /// Those of a removal, if there is one.
  struct {
    R *b, *e, *c, *out;
  } removal{};

  GatedBlock(Workspace& space, std::int64_t state_rows, bool removes)
      : rows((state_rows + gated_rows - 1) / gated_rows * gated_rows),
        b(space.take<R>(gated_block * rows)),
        e(space.take<R>(gated_block * rows)),
        c(space.take<R>(gated_block * gated_columns<R>)),
        out(space.take<R>(gated_block * gated_columns<R>)),
        decay(space.take<R>(gated_block * std::max(rows, gated_columns<R>))),
        state(space.take<R>(rows * gated_columns<R>)) {
    if (!removes) return;
    removal = {space.take<R>(gated_block * rows), space.take<R>(gated_block * rows),
               space.take<R>(gated_block * gated_columns<R>),
               space.take<R>(gated_block * gated_columns<R>)};
  }
};

/// gated_rows rows and V vectors of the state, for `tokens` tokens; of a removal, what it adds is
/// known.
template <class R, int Bytes, int V, Gate gate, bool backwards, bool removes>
ATTNBENCH_INLINE void gated_tile(const GatedBlock<R>& block, std::int64_t tokens, std::int64_t row,
                                 std::int64_t column, R* state, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = gated_columns<R>;
  const std::int64_t rows = block.rows;
  const R* const b = block.b + row;
  const R* const e = block.e + row;
  const R* const c = block.c + column;
  R* const out = block.out + column;
  const R* const decay = block.decay + (gate == Gate::row      ? row
                                        : gate == Gate::column ? column
                                                               : 0);
  typename S::Vector s[gated_rows][V];
#pragma GCC unroll 4
  for (int m = 0; m < gated_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) s[m][v] = S::load(state + m * stride + v * S::lanes);
  }
  for (std::int64_t i = 0; i < tokens; ++i) {
    const std::int64_t t = backwards ? tokens - 1 - i : i;
    typename S::Vector x[V], y[V], a[V], added[V], found[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      x[v] = S::load(c + t * columns + v * S::lanes);
      y[v] = S::load(out + t * columns + v * S::lanes);
      if constexpr (gate == Gate::column) a[v] = S::load(decay + t * columns + v * S::lanes);
      if constexpr (gate == Gate::token) a[v] = S::broadcast(decay[t]);
      if constexpr (removes) {
        added[v] = S::load(block.removal.c + column + t * columns + v * S::lanes);
        found[v] = S::load(block.removal.out + column + t * columns + v * S::lanes);
      }
    }
#pragma GCC unroll 4
    for (int m = 0; m < gated_rows; ++m) {
      const R written = b[t * rows + m];
      const R read = e[t * rows + m];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        const auto decay_state = [&]() ATTNBENCH_INLINE_LAMBDA {
          if constexpr (removes) found[v] += block.removal.e[t * rows + row + m] * s[m][v];
          if constexpr (gate != Gate::none) s[m][v] *= a[v];
          if constexpr (removes) s[m][v] += block.removal.b[t * rows + row + m] * added[v];
        };
        if constexpr (gate == Gate::row) a[v] = S::broadcast(decay[t * rows + m]);
        if constexpr (!backwards) decay_state();
        s[m][v] += written * x[v];
        y[v] += read * s[m][v];
        if constexpr (backwards) decay_state();
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      S::store(out + t * columns + v * S::lanes, y[v]);
      if constexpr (removes) {
        S::store(block.removal.out + column + t * columns + v * S::lanes, found[v]);
      }
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < gated_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) S::store(state + m * stride + v * S::lanes, s[m][v]);
  }
}

/// What one item computes: `count` columns of a head from `column` on.
struct GatedItem {
  std::int64_t b, h, column, count;
};

/// Reads a block's numbers, with outputs of 0.
template <class R, int Bytes>
ATTNBENCH_INLINE void open_gated(const GatedPass<R>& pass, const GatedItem& item, std::int64_t t0,
                                 std::int64_t tokens, const GatedBlock<R>& block) {
  constexpr std::int64_t columns = gated_columns<R>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto row = [&](const auto& from) { return from.at(item.b, item.h, t0 + t); };
    widen_row<R, Bytes>(row(pass.b), pass.rows, R{1}, block.b + t * block.rows, block.rows, R{0});
    widen_row<R, Bytes>(row(pass.e), pass.rows, R{1}, block.e + t * block.rows, block.rows, R{0});
    widen_row<R, Bytes>(row(pass.c) + item.column, item.count, R{1}, block.c + t * columns, columns,
                        R{0});
    if (pass.gate == Gate::token) block.decay[t] = row(pass.log_decay)[0];
    if (pass.gate == Gate::row) {
      to_decays<R, Bytes>(row(pass.log_decay), pass.rows, block.decay + t * block.rows, block.rows);
    }
    if (pass.gate == Gate::column) {
      to_decays<R, Bytes>(row(pass.log_decay) + item.column, item.count, block.decay + t * columns,
                          columns);
    }
  }
  if (pass.gate == Gate::token) {
    to_decays<R, Bytes>(block.decay, tokens, block.decay, gated_block);
  }
  std::fill_n(block.out, tokens * columns, R{0});
}

/// Reads those of a removal.
template <class R, int Bytes>
ATTNBENCH_INLINE void open_removal(const GatedPass<R>& pass, const GatedItem& item, std::int64_t t0,
                                   std::int64_t tokens, const GatedBlock<R>& block) {
  constexpr std::int64_t columns = gated_columns<R>;
  const auto& [b, e, c, out] = block.removal;
  for (std::int64_t t = 0; t < tokens; ++t) {
    const auto row = [&](const auto& from) { return from.at(item.b, item.h, t0 + t); };
    widen_row<R, Bytes>(row(pass.removal.b), pass.rows, R{1}, b + t * block.rows, block.rows, R{0});
    widen_row<R, Bytes>(row(pass.removal.e), pass.rows, R{1}, e + t * block.rows, block.rows, R{0});
    if (pass.finds()) continue;
    widen_row<R, Bytes>(row(pass.removal.c) + item.column, item.count, R{1}, c + t * columns,
                        columns, R{0});
  }
  std::fill_n(out, tokens * columns, R{0});
}

}  // namespace attnbench::kernels
