// The selective scan of a block of tokens: a few rows of the state at a time, whose numbers stay in
// registers from token to token, and the same from the last token to the first for its gradients.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/recurrent/decay.hpp"
#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"
#include "attention/kernels/selective_scan.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Tokens of a block: with their channels they fit the first cache.
constexpr std::int64_t selective_block = 32;
/// Rows of the state that are in registers at once.
constexpr std::int64_t selective_rows = 4;
/// Channels of an item: those of four of the widest vectors.
template <class R>
constexpr std::int64_t selective_columns = 256 / static_cast<std::int64_t>(sizeof(R));

constexpr std::int64_t selective_padded(std::int64_t rows) {
  return (rows + selective_rows - 1) / selective_rows * selective_rows;
}

/// What one item computes: `count` channels of a head from `column` on.
struct SelectiveItem {
  std::int64_t b, h, group, column, count;
};

/// An item's numbers, padded with zeros: rows to `selective_rows`, channels to selective_columns.
template <class R>
struct SelectiveBlock {
  std::int64_t rows;
  R *input, *read;        ///< [tokens, rows]
  R *step, *value, *out;  ///< [tokens, selective_columns]
  R *rate, *state;        ///< [rows, selective_columns]

  SelectiveBlock(Workspace& space, std::int64_t state_rows)
      : rows(selective_padded(state_rows)),
        input(space.take<R>(selective_block * rows)),
        read(space.take<R>(selective_block * rows)),
        step(space.take<R>(selective_block * selective_columns<R>)),
        value(space.take<R>(selective_block * selective_columns<R>)),
        out(space.take<R>(selective_block * selective_columns<R>)),
        rate(space.take<R>(rows * selective_columns<R>)),
        state(space.take<R>(rows * selective_columns<R>)) {}
};

/// Reads the item's rates, and empties the state.
template <class R>
void open_selective(const SelectiveScanSizes& sizes, const R* rates, const SelectiveItem& item,
                    const SelectiveBlock<R>& block) {
  constexpr std::int64_t columns = selective_columns<R>;
  std::fill_n(block.rate, block.rows * columns, R{0});
  std::fill_n(block.state, block.rows * columns, R{0});
  for (std::int64_t i = 0; i < sizes.rows; ++i) {
    std::copy_n(rates + (item.h * sizes.rows + i) * sizes.width + item.column, item.count,
                block.rate + i * columns);
  }
}

/// Reads a block's tokens, with outputs of 0.
template <class R, int Bytes>
void open_selective_tokens(const SelectiveScanSizes& sizes, const SelectiveScanArguments<R>& from,
                           const SelectiveItem& item, std::int64_t t0, std::int64_t tokens,
                           const SelectiveBlock<R>& block) {
  constexpr std::int64_t columns = selective_columns<R>;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t t = 0; t < tokens; ++t) {
      const auto shared = [&](const Rows<const R>& rows, R* to) ATTNBENCH_INLINE_LAMBDA {
        widen_row<R, Bytes>(rows.at(item.b, item.group, t0 + t), sizes.rows, R{1},
                            to + t * block.rows, block.rows, R{0});
      };
      const auto own = [&](const Rows<const R>& rows, R* to) ATTNBENCH_INLINE_LAMBDA {
        widen_row<R, Bytes>(rows.at(item.b, item.h, t0 + t) + item.column, item.count, R{1},
                            to + t * columns, columns, R{0});
      };
      shared(from.input, block.input);
      shared(from.read, block.read);
      own(from.step, block.step);
      own(from.values, block.value);
    }
  });
  std::fill_n(block.out, tokens * columns, R{0});
}

/// selective_rows rows and V vectors of the state, from `row` and `column` on, for `tokens` tokens.
template <class R, int Bytes, int V>
ATTNBENCH_INLINE void selective_tile(const SelectiveBlock<R>& block, std::int64_t tokens,
                                     std::int64_t row, std::int64_t column) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = selective_columns<R>;
  typename S::Vector s[selective_rows][V], rate[selective_rows][V];
#pragma GCC unroll 4
  for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const std::int64_t place = (row + m) * columns + column + v * S::lanes;
      s[m][v] = S::load(block.state + place);
      rate[m][v] = S::load(block.rate + place) * static_cast<R>(log2_of_e);
    }
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    typename S::Vector step[V], amount[V], y[V];
    const R* const input = block.input + t * block.rows + row;
    const R* const read = block.read + t * block.rows + row;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const std::int64_t place = t * columns + column + v * S::lanes;
      step[v] = S::load(block.step + place);
      amount[v] = step[v] * S::load(block.value + place);
      y[v] = S::load(block.out + place);
    }
#pragma GCC unroll 4
    for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        s[m][v] *= rounded_exp2<R, Bytes>(rate[m][v] * step[v]);
        s[m][v] += input[m] * amount[v];
        y[v] += read[m] * s[m][v];
      }
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) S::store(block.out + t * columns + column + v * S::lanes, y[v]);
  }
#pragma GCC unroll 4
  for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      S::store(block.state + (row + m) * columns + column + v * S::lanes, s[m][v]);
    }
  }
}

/// A block's part of the gradient, whose states are computed again from block.state.
template <class R>
struct SelectiveGradientBlock {
  R* d_out;              ///< [tokens, selective_columns]
  R *d_amount, *d_step;  ///< of delta x, and of delta by the decays; [tokens, selective_columns]
  R *d_state, *d_rate;   ///< [rows, selective_columns], of all tokens that follow
  R *states, *decays;    ///< of a tile, before and of each token, [tokens, selective_rows, columns]
  R *d_input, *d_read;   ///< of a tile's rows, sums to be, [tokens, selective_rows, lanes]

  SelectiveGradientBlock(Workspace& space, std::int64_t rows) {
    constexpr std::int64_t columns = selective_columns<R>;
    for (R** each : {&d_out, &d_amount, &d_step}) *each = space.take<R>(selective_block * columns);
    for (R** each : {&d_state, &d_rate}) *each = space.take<R>(selective_padded(rows) * columns);
    for (R** each : {&states, &decays}) {
      *each = space.take<R>(selective_block * selective_rows * columns);
    }
    // A vector of the widest kind for each number.
    for (R** each : {&d_input, &d_read}) {
      *each = space.take<R>(selective_block * selective_rows * columns / 4);
    }
  }
};

/// The gradients through selective_rows rows and V vectors. For the gradient d of the state h of
/// token t,
///   d_t = C_t dy_t + a_{t+1} d_{t+1},   dC_t = sum over channels of dy_t h_t,
///   dB_t = sum over channels of d_t delta_t x_t,   d(delta_t x_t) = sum_n B_t d_t,
/// and of the exponent rate delta_t: a_t d_t h_{t-1}.
template <class R, int Bytes, int V>
ATTNBENCH_INLINE void selective_gradient_tile(const SelectiveBlock<R>& block,
                                              const SelectiveGradientBlock<R>& to,
                                              std::int64_t tokens, std::int64_t row,
                                              std::int64_t column) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = selective_columns<R>;
  constexpr std::int64_t each = selective_rows * V * S::lanes;
  typename S::Vector d[selective_rows][V], d_rate[selective_rows][V], rate[selective_rows][V];
  const auto place_of = [&](int m, int v) { return (row + m) * columns + column + v * S::lanes; };
  const auto held = [](R* of, std::int64_t t, int m, int v)
                        ATTNBENCH_INLINE_LAMBDA { return of + t * each + (m * V + v) * S::lanes; };
#pragma GCC unroll 4
  for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      rate[m][v] = S::load(block.rate + place_of(m, v));
      d[m][v] = S::load(block.state + place_of(m, v));  // the state itself, at first
    }
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    const R* const input = block.input + t * block.rows + row;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const std::int64_t place = t * columns + column + v * S::lanes;
      const auto step = S::load(block.step + place);
      const auto amount = step * S::load(block.value + place);
#pragma GCC unroll 4
      for (int m = 0; m < selective_rows; ++m) {
        const auto decay = decay_of<R, Bytes>(rate[m][v] * step);
        S::store(held(to.states, t, m, v), d[m][v]);
        S::store(held(to.decays, t, m, v), decay);
        d[m][v] = d[m][v] * decay + input[m] * amount;
      }
    }
  }
  typename S::Vector after[selective_rows][V];  // the state after a token
#pragma GCC unroll 4
  for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      after[m][v] = d[m][v];
      d[m][v] = S::load(to.d_state + place_of(m, v));
      d_rate[m][v] = S::load(to.d_rate + place_of(m, v));
    }
  }
  for (std::int64_t t = tokens; t-- > 0;) {
    const R* const input = block.input + t * block.rows + row;
    const R* const read = block.read + t * block.rows + row;
    typename S::Vector d_input[selective_rows], d_read[selective_rows];
#pragma GCC unroll 4
    for (int m = 0; m < selective_rows; ++m) {
      d_input[m] = S::load(to.d_input + (t * selective_rows + m) * S::lanes);
      d_read[m] = S::load(to.d_read + (t * selective_rows + m) * S::lanes);
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      const std::int64_t place = t * columns + column + v * S::lanes;
      const auto step = S::load(block.step + place);
      const auto amount = step * S::load(block.value + place);
      const auto d_y = S::load(to.d_out + place);
      auto d_amount = S::load(to.d_amount + place), d_step = S::load(to.d_step + place);
#pragma GCC unroll 4
      for (int m = 0; m < selective_rows; ++m) {
        d[m][v] += read[m] * d_y;
        d_read[m] += after[m][v] * d_y;
        d_input[m] += d[m][v] * amount;
        d_amount += input[m] * d[m][v];
        d[m][v] *= S::load(held(to.decays, t, m, v));
        after[m][v] = S::load(held(to.states, t, m, v));
        const auto d_exponent = d[m][v] * after[m][v];
        d_step += rate[m][v] * d_exponent;
        d_rate[m][v] += step * d_exponent;
      }
      S::store(to.d_amount + place, d_amount);
      S::store(to.d_step + place, d_step);
    }
#pragma GCC unroll 4
    for (int m = 0; m < selective_rows; ++m) {
      S::store(to.d_input + (t * selective_rows + m) * S::lanes, d_input[m]);
      S::store(to.d_read + (t * selective_rows + m) * S::lanes, d_read[m]);
    }
  }
#pragma GCC unroll 4
  for (int m = 0; m < selective_rows; ++m) {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      S::store(to.d_state + place_of(m, v), d[m][v]);
      S::store(to.d_rate + place_of(m, v), d_rate[m][v]);
    }
  }
}

}  // namespace attnbench::kernels
