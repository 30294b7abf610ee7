// The tokens of a removal key (RWKV-7): what it finds in the state, n_t = -S_{t-1}^T r_t, is
// written back under what it erases, S_t = diag(a_t) S_{t-1} + m_t n_t^T + k_t v_t^T. A token must
// have read the whole state before it writes: each row is loaded once for a token, decayed, written
// to, read by the query and by the next token's removal key.
//
// Backwards the gradient of the state goes through the same in the other order: a token first
// writes q_t dy_t^T and reads dv_t by its key, then the gradient decays and r_t z_t^T is written to
// it, with z_t = -G_t^T m_t.
#pragma once

#include "attention/kernels/cpu/recurrent/gated_state_block.hpp"

namespace attnbench::kernels {

/// `tokens` tokens of V vectors of columns, with a decay of rows; the state is as the token before
/// them (backwards: behind them) left it.
template <class R, int Bytes, int V, bool backwards>
ATTNBENCH_INLINE void removing_columns(const GatedBlock<R>& block, std::int64_t tokens,
                                       std::int64_t column, R* state, std::int64_t stride) {
  using S = Simd<R, Bytes>;
  constexpr std::int64_t columns = gated_columns<R>;
  const std::int64_t rows = block.rows;
  const auto token = [&](std::int64_t i) { return backwards ? tokens - 1 - i : i; };
  typename S::Vector x[V], y[V];        // what a token writes, and its output
  typename S::Vector held[V], back[V];  // what a removal key reads, and minus what one has read
  const auto begin = [&](std::int64_t t) ATTNBENCH_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      x[v] = S::load(block.c + t * columns + column + v * S::lanes);
      y[v] = S::broadcast(0);
    }
  };
  const auto end = [&](std::int64_t t) ATTNBENCH_INLINE_LAMBDA {
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) S::store(block.out + t * columns + column + v * S::lanes, y[v]);
  };
  // Row `at` of the tokens, and of the state.
  const auto write_and_read = [&](std::int64_t at, typename S::Vector(&s)[V])
                                  ATTNBENCH_INLINE_LAMBDA {
                                    const R b = block.b[at];
                                    const R e = block.e[at];
#pragma GCC unroll 4
                                    for (int v = 0; v < V; ++v) {
                                      s[v] += b * x[v];
                                      y[v] += e * s[v];
                                    }
                                  };
  const auto meet = [&](std::int64_t at, typename S::Vector(&s)[V]) ATTNBENCH_INLINE_LAMBDA {
    if constexpr (backwards) write_and_read(at, s);
    const R r = block.removal.e[at];
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) held[v] += r * s[v];
  };
  const auto each_row = [&](const auto& body) ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t i = 0; i < rows; ++i) {
      typename S::Vector s[V];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) s[v] = S::load(state + i * stride + v * S::lanes);
      body(i, s);
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) S::store(state + i * stride + v * S::lanes, s[v]);
    }
  };
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) held[v] = S::broadcast(0);
  if (backwards) begin(token(0));
  each_row([&](std::int64_t i, typename S::Vector(&s)[V])
               ATTNBENCH_INLINE_LAMBDA { meet(token(0) * rows + i, s); });
  for (std::int64_t done = 0; done < tokens; ++done) {
    const std::int64_t t = token(done), next = token(done + 1);
    const bool last = done + 1 == tokens;
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) {
      back[v] = -held[v];
      held[v] = S::broadcast(0);
      S::store(block.removal.out + t * columns + column + v * S::lanes, back[v]);
    }
    if (backwards) end(t);
    if (!backwards || !last) begin(backwards ? next : t);
    each_row([&](std::int64_t i, typename S::Vector(&s)[V]) ATTNBENCH_INLINE_LAMBDA {
      const R a = block.decay[t * rows + i];
      const R m = block.removal.b[t * rows + i];
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) s[v] = a * s[v] + m * back[v];
      if constexpr (!backwards) write_and_read(t * rows + i, s);
      if (!last) meet(next * rows + i, s);
    });
    if (!backwards) end(t);
  }
}

/// A block of a pass whose removal adds what it finds.
template <class R, int Bytes>
void remove_gated(const GatedPass<R>& pass, std::int64_t tokens, std::int64_t vectors,
                  const GatedBlock<R>& block, R* state, std::int64_t stride) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    constexpr int most = has_32_registers<Bytes> ? 4 : 2;
    in_runs<most>(vectors, [&](std::int64_t first, auto count) ATTNBENCH_INLINE_LAMBDA {
      constexpr int V = decltype(count)::value;
      const std::int64_t column = first * Simd<R, Bytes>::lanes;
      if (pass.backwards) {
        removing_columns<R, Bytes, V, true>(block, tokens, column, state + column, stride);
      } else {
        removing_columns<R, Bytes, V, false>(block, tokens, column, state + column, stride);
      }
    });
  });
}

}  // namespace attnbench::kernels
