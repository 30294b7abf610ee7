#include "attention/kernels/cpu/recurrent/intra_block_scores.hpp"

#include "attention/kernels/cpu/product/multiply.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {
namespace {

/// M rows of N vectors, in registers.
template <class R, int Bytes, int M, int N>
struct Tile {
  using S = Simd<R, Bytes>;
  typename S::Vector sums[M][N];

  ATTNBENCH_INLINE Tile() {
#pragma GCC unroll 8
    for (auto& row : sums) {
#pragma GCC unroll 4
      for (auto& sum : row) sum = S::broadcast(0);
    }
  }
  /// Adds to the first `count` rows a column of the left side, `step` apart, times a row of the
  /// right one, whose vectors lie `beside` it.
  ATTNBENCH_INLINE void add(const R* left, std::int64_t step, const R* right,
                            const std::int64_t (&beside)[N], int count = M) {
    typename S::Vector row[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) row[j] = S::load(right + beside[j]);
#pragma GCC unroll 8
    for (int i = 0; i < count; ++i) {
      const R x = left[i * step];
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) sums[i][j] += x * row[j];
    }
  }
  /// Adds tokens [t, t + M) of v times columns of `right` [width, stride].
  ATTNBENCH_INLINE void add_product(const Panels<const R>& v, std::int64_t width, std::int64_t t,
                                    const R* right, std::int64_t stride, Prefetch::Column lines,
                                    std::int64_t line_count) {
    std::int64_t beside[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) beside[j] = j * S::lanes;
    for (std::int64_t d = 0; d < width; d += panel_columns<R>) {
      const R* left = v.at(t, d);
      if (d >= line_count) lines.step = 0;
      for (std::int64_t i = panel_columns<R>; i > 0; --i) {
        fetch(lines.from);
        lines.from += static_cast<std::uintptr_t>(lines.step);
        add(left, v.token, right, beside);
        ++left;
        right += stride;
      }
    }
  }
};

/// `body(first, count)` for all tokens, as many at a time as there are registers for; `count` is a
/// constant.
template <int Bytes, class Body>
ATTNBENCH_INLINE void in_token_runs(std::int64_t tokens, const Body& body) {
  constexpr int most = has_32_registers<Bytes> ? 6 : 4;
  std::int64_t t = 0;
  for (; t + most <= tokens; t += most) body(t, std::integral_constant<int, most>{});
  for (; t < tokens; ++t) body(t, std::integral_constant<int, 1>{});
}
template <int Bytes>
constexpr int vectors_at_once = has_32_registers<Bytes> ? 4 : 2;

template <class R, int Bytes, int M, int N>
ATTNBENCH_INLINE void meet_tile(std::int64_t width, const Panels<const R>& v, std::int64_t s,
                                std::int64_t t, const R* transposed, std::int64_t stride,
                                R* intra_block) {
  using S = Simd<R, Bytes>;
  Tile<R, Bytes, M, N> tile;
  tile.add_product(v, width, s, transposed + t, stride,
                   {reinterpret_cast<std::uintptr_t>(intra_block), 0}, 0);
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      S::store(intra_block + (s + i) * stride + t + j * S::lanes, tile.sums[i][j]);
    }
  }
}

template <class R, int Bytes, int M, int N>
ATTNBENCH_INLINE void read_tile(const IntraBlockScores<R>& block, std::int64_t t, std::int64_t l) {
  using S = Simd<R, Bytes>;
  Tile<R, Bytes, M, N> tile;
  tile.add_product(block.v, block.width, t, block.room + l, block.latents,
                   block.prefetch->next(block.intra_block), block.prefetch->tokens());
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) tile.sums[i][j] *= S::load(block.decay + l + j * S::lanes);
  }
  const R* right = block.p.at(t, l);
  std::int64_t beside[N];
#pragma GCC unroll 4
  for (int j = 0; j < N; ++j) beside[j] = block.p.at(t, l + j * S::lanes) - right;
  const std::int64_t stride = intra_block_stride<R>(block.tokens);
  const std::int64_t step = block.p.token;
  const R* left = block.intra_block + t * stride + t;
  // A token sees itself and those after it, of its own tile, too.
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
    tile.add(left, stride, right, beside, i + 1);
    ++left;
    right += step;
  }
  for (std::int64_t later = block.tokens - t - M; later > 0; --later) {
    tile.add(left, stride, right, beside);
    ++left;
    right += step;
  }
#pragma GCC unroll 8
  for (int i = 0; i < M; ++i) {
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(block.z.at(t + i, l + j * S::lanes), tile.sums[i][j]);
  }
}

}  // namespace

template <class R, int Bytes>
void intra_block_scores(std::int64_t tokens, std::int64_t width, const Panels<const R>& v,
                        const Panels<const R>& g, R* room, R* intra_block) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    const Panels<const R> values = v;  // a store cannot change a copy
    const std::int64_t stride = intra_block_stride<R>(tokens);
    for (std::int64_t d = 0; d < width; d += panel_columns<R>) {
      pack_transposed<R, Bytes>(g.at(0, d), g.token, tokens, panel_columns<R>, 1, room + d * stride,
                                stride);
    }
    in_token_runs<Bytes>(tokens, [&](std::int64_t s, auto rows) ATTNBENCH_INLINE_LAMBDA {
      in_runs<vectors_at_once<Bytes>>(
          stride / lanes,
          [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
            meet_tile<R, Bytes, decltype(rows)::value, decltype(vectors)::value>(
                width, values, s, first * lanes, room, stride, intra_block);
          },
          s / lanes);
    });
  });
}

template <class R, int Bytes>
void read_intra_block_scores(const IntraBlockScores<R>& given) {
  constexpr std::int64_t lanes = Simd<R, Bytes>::lanes;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    const IntraBlockScores<R> block = given;  // a store cannot change a copy
    pack_transposed<R, Bytes>(block.memory, block.width, block.latents, block.width, 1, block.room,
                              block.latents);
    in_runs<vectors_at_once<Bytes>>(
        block.latents / lanes, [&](std::int64_t first, auto vectors) ATTNBENCH_INLINE_LAMBDA {
          in_token_runs<Bytes>(
              block.tokens, [&](std::int64_t t, auto rows) ATTNBENCH_INLINE_LAMBDA {
                read_tile<R, Bytes, decltype(rows)::value, decltype(vectors)::value>(block, t,
                                                                                     first * lanes);
              });
        });
  });
}

#define ATTNBENCH_INSTANTIATE(R, BYTES)                                                          \
  template void intra_block_scores<R, BYTES>(std::int64_t, std::int64_t, const Panels<const R>&, \
                                             const Panels<const R>&, R*, R*);                    \
  template void read_intra_block_scores<R, BYTES>(const IntraBlockScores<R>&);
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
