// The backward pass that the recurrent families share. With E and P [tokens, L] as the family made
// them of a block's keys and queries, S the memory before the block (already faded) and g the
// gradient of the results, o = P S + tril(P E^T) V gives
//   X = dLoss/dP = g S^T + tril(g V^T) E,
//   Z = dLoss/dE = tril(g V^T)^T P + V R^T,          R the gradient of the memory after the block,
//   dLoss/dV = tril(P E^T)^T g + E R^T,              R <- fade (R + P^T g) for the block before.
// A first sweep keeps the memory at every border of blocks; a second one runs backwards. Memories
// lie transposed, [D, L], so that every product finds its right side in rows.
#pragma once

#include <cstring>

#include "attention/kernels/multiply.hpp"
#include "attention/kernels/recurrence.hpp"

namespace attnbench::kernels {

/// Tokens of one block of the backward pass: the products inside a block cost in proportion, the
/// kept memories in inverse proportion.
constexpr std::int64_t gradient_tokens = 32;

/// What one worker holds. Rows are padded so that every product may overrun.
template <class Family>
struct GradientScratch {
  using R = typename Family::R;
  typename Family::Block block;
  std::int64_t latents, width;  // padded
  R *upstream, *values;         // [tokens, width]
  R* values_t;                  // [width, tokens]
  R* keys_t;                    // [latents, tokens]
  R *inner, *outer;             // tril(g V^T), tril(P E^T): [tokens, tokens]
  R *dp, *de;                   // X, Z: [tokens, latents]
  R* dv_t;                      // [width, tokens]
  R *state, *gradient;          // S^T, R^T: [width, latents]
  R* saved;                     // for each block: S^T, then what the family carries
  std::int64_t saved_stride;

  GradientScratch(Workspace& space, const typename Family::Sizes& sizes)
      : block(space, sizes, gradient_tokens),
        latents(padded(sizes.memory_rows(), sizeof(R))),
        width(padded(sizes.value_dim, sizeof(R))),
        upstream(space.take<R>(gradient_tokens * width)),
        values(space.take<R>(gradient_tokens * width)),
        values_t(space.take<R>(width * gradient_tokens)),
        keys_t(space.take<R>(latents * gradient_tokens)),
        inner(space.take<R>(gradient_tokens * gradient_tokens)),
        outer(space.take<R>(gradient_tokens * gradient_tokens)),
        dp(space.take<R>(gradient_tokens * latents)),
        de(space.take<R>(gradient_tokens * latents)),
        dv_t(space.take<R>(width * gradient_tokens)),
        state(space.take<R>(width * latents)),
        gradient(space.take<R>(width * latents)),
        saved(nullptr),
        saved_stride(width * latents + Family::carried_rows * latents) {
    saved = space.take<R>(blocks(sizes) * saved_stride);
  }
  static std::int64_t blocks(const typename Family::Sizes& sizes) {
    return (sizes.length + gradient_tokens - 1) / gradient_tokens;
  }
};

/// The transpose of `rows` rows of `columns` numbers, rows of the result filled up with zeros.
template <class R>
ATTNBENCH_INLINE void turn(const R* from, std::int64_t stride, std::int64_t rows,
                           std::int64_t columns, R* to) {
  for (std::int64_t c0 = 0; c0 < columns; c0 += 8) {
    const std::int64_t c1 = std::min(columns, c0 + 8);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = c0; c < c1; ++c) to[c * gradient_tokens + r] = from[r * stride + c];
    }
  }
  for (std::int64_t c = 0; c < columns; ++c) {
    std::fill(to + c * gradient_tokens + rows, to + (c + 1) * gradient_tokens, R{0});
  }
}

/// Multiplies each column l of a [width, latents] memory by factor[l].
template <class R, int Bytes>
ATTNBENCH_INLINE void fade_memory(R* memory, const R* factor, std::int64_t width,
                                  std::int64_t latents) {
  using S = Simd<R, Bytes>;
  for (std::int64_t d = 0; d < width; ++d) {
    for (std::int64_t l = 0; l < latents; l += S::lanes) {
      R* const at = memory + d * latents + l;
      S::store(at, S::load(at) * S::load(factor + l));
    }
  }
}

inline std::int64_t whole_rows(std::int64_t rows) {
  return (rows + row_unit - 1) / row_unit * row_unit;
}

/// One head: the sweeps, for a family's instance `f` that knows arguments, batch row and head.
template <class Family, int Bytes>
class GradientSweep {
  using R = typename Family::R;
  using Scratch = GradientScratch<Family>;

 public:
  ATTNBENCH_INLINE GradientSweep(const Family& family, const Scratch& scratch)
      : f_(family), s_(scratch) {}

  ATTNBENCH_INLINE void run() const {
    const std::int64_t length = f_.sizes.length;
    const std::int64_t memory = s_.width * s_.latents;
    std::fill_n(s_.state, memory, R{0});
    std::fill_n(s_.gradient, memory, R{0});
    f_.begin(s_.block);
    for (std::int64_t t0 = 0, i = 0; t0 < length; t0 += gradient_tokens, ++i) {
      save(i);
      const std::int64_t end = std::min(length, t0 + gradient_tokens);
      for (std::int64_t t = t0; t < end;) t += advance(t, end);
    }
    f_.begin_gradient(s_.block);
    for (std::int64_t i = Scratch::blocks(f_.sizes) - 1; i >= 0; --i) {
      const std::int64_t t0 = i * gradient_tokens;
      back_through(i, t0, std::min(length, t0 + gradient_tokens));
    }
  }

 private:
  ATTNBENCH_INLINE void save(std::int64_t i) const {
    R* const to = s_.saved + i * s_.saved_stride;
    std::copy_n(s_.state, s_.width * s_.latents, to);
    f_.save(s_.block, to + s_.width * s_.latents);
  }
  ATTNBENCH_INLINE void restore(std::int64_t i) const {
    const R* const from = s_.saved + i * s_.saved_stride;
    std::copy_n(from, s_.width * s_.latents, s_.state);
    f_.restore(s_.block, from + s_.width * s_.latents);
  }

  /// The block, or a part of it, at t: E, P and the faded memory. Returns its tokens.
  ATTNBENCH_INLINE std::int64_t open(std::int64_t t, std::int64_t end) const {
    const std::int64_t tokens = f_.template prepare<Bytes>(s_.block, t, end - t);
    f_.load_values(t, tokens, s_.values, s_.width);
    fade_memory<R, Bytes>(s_.state, s_.block.fade, s_.width, s_.latents);
    return tokens;
  }
  /// Takes the block into the memory.
  ATTNBENCH_INLINE std::int64_t advance(std::int64_t t, std::int64_t end) const {
    const std::int64_t tokens = open(t, end);
    multiply<R, Bytes, true>(s_.width, s_.latents, tokens, Left<R>{s_.values, 1, s_.width},
                             s_.block.scores, s_.block.stride, s_.state, s_.latents);
    return tokens;
  }

  /// Backwards through block i, which may fall into parts: each is reached from the kept memory.
  ATTNBENCH_INLINE void back_through(std::int64_t i, std::int64_t t0, std::int64_t end) const {
    std::int64_t until = end;
    while (until > t0) {
      restore(i);
      std::int64_t t = t0;
      std::int64_t tokens = open(t, end);
      while (t + tokens < until) {
        multiply<R, Bytes, true>(s_.width, s_.latents, tokens, Left<R>{s_.values, 1, s_.width},
                                 s_.block.scores, s_.block.stride, s_.state, s_.latents);
        t += tokens;
        tokens = open(t, end);
      }
      back(t, tokens);
      until = t;
    }
  }

  /// Sets to 0 what a token would see of later ones.
  ATTNBENCH_INLINE void hide_future(R* square, std::int64_t tokens) const {
    for (std::int64_t t = 0; t < tokens; ++t) {
      std::fill(square + t * gradient_tokens + t + 1, square + (t + 1) * gradient_tokens, R{0});
    }
  }

  ATTNBENCH_INLINE void back(std::int64_t t0, std::int64_t n) const {
    const auto& s = s_;
    const std::int64_t rows = whole_rows(n);
    const Left<R> g{s.upstream, s.width, 1};
    const Left<R> g_t{s.upstream, 1, s.width};
    f_.load_upstream(s.block, t0, n, s.upstream, s.width);
    turn(s.values, s.width, n, s.width, s.values_t);
    turn(s.block.scores, s.block.stride, n, s.latents, s.keys_t);

    multiply<R, Bytes, false>(rows, gradient_tokens, s.width, g, s.values_t, gradient_tokens,
                              s.inner, gradient_tokens);
    hide_future(s.inner, rows);
    multiply<R, Bytes, false>(rows, gradient_tokens, s.latents,
                              Left<R>{s.block.weights, s.block.stride, 1}, s.keys_t,
                              gradient_tokens, s.outer, gradient_tokens);
    hide_future(s.outer, rows);

    multiply<R, Bytes, false>(rows, s.latents, s.width, g, s.state, s.latents, s.dp, s.latents);
    multiply<R, Bytes, true>(rows, s.latents, n, Left<R>{s.inner, gradient_tokens, 1},
                             s.block.scores, s.block.stride, s.dp, s.latents);
    multiply<R, Bytes, false>(rows, s.latents, n, Left<R>{s.inner, 1, gradient_tokens},
                              s.block.weights, s.block.stride, s.de, s.latents);
    multiply<R, Bytes, true>(rows, s.latents, s.width, Left<R>{s.values, s.width, 1}, s.gradient,
                             s.latents, s.de, s.latents);
    multiply<R, Bytes, false>(s.width, gradient_tokens, s.latents,
                              Left<R>{s.gradient, s.latents, 1}, s.keys_t, gradient_tokens, s.dv_t,
                              gradient_tokens);
    multiply<R, Bytes, true>(s.width, gradient_tokens, n, g_t, s.outer, gradient_tokens, s.dv_t,
                             gradient_tokens);
    multiply<R, Bytes, true>(s.width, s.latents, n, g_t, s.block.weights, s.block.stride,
                             s.gradient, s.latents);
    fade_memory<R, Bytes>(s.gradient, s.block.fade, s.width, s.latents);

    f_.template finish<Bytes>(s.block, t0, n, s.dp, s.de, s.latents);
    f_.store_value_gradient(t0, n, s.dv_t);
  }

  const Family& f_;
  const Scratch& s_;
};

template <class Family>
void gradient_baseline(const Family& family, const GradientScratch<Family>& scratch) {
  GradientSweep<Family, 16>(family, scratch).run();
}
template <class Family>
ATTNBENCH_AVX2 void gradient_avx2(const Family& family, const GradientScratch<Family>& scratch) {
  GradientSweep<Family, 32>(family, scratch).run();
}
template <class Family>
ATTNBENCH_AVX512 void gradient_avx512(const Family& family,
                                      const GradientScratch<Family>& scratch) {
  GradientSweep<Family, 64>(family, scratch).run();
}

template <class Family>
std::size_t gradient_scratch_bytes(const typename Family::Sizes& sizes) {
  Workspace count;
  GradientScratch<Family>(count, sizes);
  return count.used();
}

/// All heads, each with scratch of its worker's out of `space`. `family_of(b, h)` makes the family.
template <class Family, class Make>
void recurrent_backward(const typename Family::Sizes& sizes, ThreadTeam& team, Workspace& space,
                        const Make& family_of) {
  const auto each = static_cast<std::int64_t>(gradient_scratch_bytes<Family>(sizes));
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const auto run = pick(gradient_baseline<Family>, gradient_avx2<Family>, gradient_avx512<Family>);
  share(team, sizes.batch * sizes.heads, [&](int worker, std::int64_t head) {
    Workspace own(scratch + worker * each, static_cast<std::size_t>(each));
    const GradientScratch<Family> s(own, sizes);
    run(family_of(head / sizes.heads, head % sizes.heads), s);
  });
}

/// `rows` rows of `columns` numbers times `factor`, to row t0 and on of `to`.
template <class T>
ATTNBENCH_INLINE void store_rows(const Compute<T>* from, std::int64_t stride, std::int64_t rows,
                                 std::int64_t columns, Compute<T> factor, const Rows<T>& to,
                                 std::int64_t b, std::int64_t h, std::int64_t t0) {
  for (std::int64_t t = 0; t < rows; ++t) {
    T* const row = to.at(b, h, t0 + t);
    for (std::int64_t i = 0; i < columns; ++i) narrow(factor * from[t * stride + i], row[i]);
  }
}

/// The gradient of the values, which a sweep leaves transposed.
template <class T>
ATTNBENCH_INLINE void store_turned(const Compute<T>* from, std::int64_t rows, std::int64_t columns,
                                   const Rows<T>& to, std::int64_t b, std::int64_t h,
                                   std::int64_t t0) {
  for (std::int64_t t = 0; t < rows; ++t) {
    T* const row = to.at(b, h, t0 + t);
    for (std::int64_t i = 0; i < columns; ++i) narrow(from[i * gradient_tokens + t], row[i]);
  }
}

}  // namespace attnbench::kernels
