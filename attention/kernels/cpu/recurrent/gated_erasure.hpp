// The delta rule's tokens: what a token's key finds in the state is taken from what it writes, so
// that a token must have read the whole state before it writes. Each row of the state is loaded
// once for a token: it is written to, read by the query, decayed for the next token and read by
// that token's key.
//
// The gradient of the state goes from the last token to the first, and is erased there in the same
// way: with G_t = dL/dS_t, which has gained q_t dy_t^T, and w_t = G_t^T k_t, which is the gradient
// of what the token writes, dL/dS_{t-1} = diag(a_t) (G_t - beta_t k_t w_t^T).
#pragma once

#include <type_traits>

#include "attention/kernels/cpu/recurrent/gated_state_block.hpp"

namespace attnbench::kernels {

/// `tokens` tokens of V vectors of columns; the state is as the token before them left it. `beta`
/// [tokens]. The output is what the queries read or, if `writes`, what each token wrote.
template <class R, int Bytes, int V, Gate gate>
ATTNBENCH_INLINE void erasing_columns(const GatedBlock<R>& block, const R* beta, bool writes,
                                      std::int64_t tokens, std::int64_t column, R* state,
                                      std::int64_t stride) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = gated_columns<R>;
  const std::int64_t rows = block.rows;
  typename S::Vector held[V];  // of the token's key, k^T diag(a) S
  // Row i of the state, decayed for token t and read by its key.
  const auto meet = [&](std::int64_t t, std::int64_t i, typename S::Vector(&s)[V])
                        ATTNBENCH_INLINE_LAMBDA {
                          const R a = gate == Gate::row     ? block.decay[t * rows + i]
                                      : gate == Gate::token ? block.decay[t]
                                                            : R{1};
                          const R k = block.b[t * rows + i];
#pragma GCC unroll 4
                          for (int v = 0; v < V; ++v) {
                            if constexpr (gate != Gate::none) s[v] *= a;
                            held[v] += k * s[v];
                          }
                        };
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) held[v] = S::broadcast(0);
  for (std::int64_t i = 0; i < rows; ++i) {
    typename S::Vector s[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) s[v] = S::load(state + i * stride + v * S::lanes);
    meet(0, i, s);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) S::store(state + i * stride + v * S::lanes, s[v]);
  }
  for (std::int64_t t = 0; t < tokens; ++t) {
    typename S::Vector u[V], y[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      u[v] = S::load(block.c + t * columns + column + v * S::lanes) - beta[t] * held[v];
      y[v] = held[v] = S::broadcast(0);
    }
    const bool last = t + 1 == tokens;
    for (std::int64_t i = 0; i < rows; ++i) {
      const R k = block.b[t * rows + i];
      const R q = block.e[t * rows + i];
      typename S::Vector s[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        s[v] = S::load(state + i * stride + v * S::lanes) + k * u[v];
        y[v] += q * s[v];
      }
      if (!last) meet(t + 1, i, s);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) S::store(state + i * stride + v * S::lanes, s[v]);
    }
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      S::store(block.out + t * columns + column + v * S::lanes, writes ? u[v] : y[v]);
    }
  }
}

/// The same from the last token to the first, of the state's gradient: `e` [tokens, rows] are the
/// queries, `c` the gradients of outputs; the output is w.
template <class R, int Bytes, int V, Gate gate>
ATTNBENCH_INLINE void erasing_columns_back(const GatedBlock<R>& block, const R* beta,
                                           std::int64_t tokens, std::int64_t column, R* state,
                                           std::int64_t stride) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = gated_columns<R>;
  const std::int64_t rows = block.rows;
  typename S::Vector held[V], upstream[V];  // w and dy of the token
  const auto begin = [&](std::int64_t t) ATTNBENCH_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      held[v] = S::broadcast(0);
      upstream[v] = S::load(block.c + t * columns + column + v * S::lanes);
    }
  };
  // Row i of the gradient, which gains what the token's query read of it, and is read by its key.
  const auto meet = [&](std::int64_t t, std::int64_t i, typename S::Vector(&s)[V])
                        ATTNBENCH_INLINE_LAMBDA {
                          const R q = block.e[t * rows + i];
                          const R k = block.b[t * rows + i];
#pragma GCC unroll 4
                          for (int v = 0; v < V; ++v) {
                            s[v] += q * upstream[v];
                            held[v] += k * s[v];
                          }
                        };
  begin(tokens - 1);
  for (std::int64_t i = 0; i < rows; ++i) {
    typename S::Vector s[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) s[v] = S::load(state + i * stride + v * S::lanes);
    meet(tokens - 1, i, s);
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) S::store(state + i * stride + v * S::lanes, s[v]);
  }
  for (std::int64_t t = tokens - 1; t >= 0; --t) {
    typename S::Vector erased[V];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      S::store(block.out + t * columns + column + v * S::lanes, held[v]);
      erased[v] = beta[t] * held[v];
    }
    if (t > 0) begin(t - 1);
    for (std::int64_t i = 0; i < rows; ++i) {
      const R k = block.b[t * rows + i];
      const R a = gate == Gate::row     ? block.decay[t * rows + i]
                  : gate == Gate::token ? block.decay[t]
                                        : R{1};
      typename S::Vector s[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) {
        s[v] = S::load(state + i * stride + v * S::lanes) - k * erased[v];
        if constexpr (gate != Gate::none) s[v] *= a;
      }
      if (t > 0) meet(t - 1, i, s);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) S::store(state + i * stride + v * S::lanes, s[v]);
    }
  }
}

/// A block of a pass with an erasure.
template <class R, int Bytes>
void erase_gated(const GatedPass<R>& pass, const GatedItem& item, std::int64_t t0,
                 std::int64_t tokens, std::int64_t vectors, const GatedBlock<R>& block, R* state,
                 std::int64_t stride) {
  R beta[gated_block];
  for (std::int64_t t = 0; t < tokens; ++t) beta[t] = pass.beta.at(item.b, item.h, t0 + t)[0];
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    constexpr int most = has_32_registers<Bytes> ? 4 : 2;
    in_runs<most>(vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
      constexpr int V = decltype(count)::value;
      const std::int64_t column = first * Simd<R, Bytes>::lanes;
      R* const own = state + column;
      const auto run = [&](auto gate) ATTNBENCH_INLINE_LAMBDA {
        constexpr Gate kind = decltype(gate)::value;
        if (pass.backwards) {
          erasing_columns_back<R, Bytes, V, kind>(block, beta, tokens, column, own, stride);
        } else {
          erasing_columns<R, Bytes, V, kind>(block, beta, pass.writes, tokens, column, own, stride);
        }
      };
      if (pass.gate == Gate::none) {
        run(std::integral_constant<Gate, Gate::none>{});
      } else if (pass.gate == Gate::token) {
        run(std::integral_constant<Gate, Gate::token>{});
      } else {
        run(std::integral_constant<Gate, Gate::row>{});
      }
    });
  });
}

}  // namespace attnbench::kernels
