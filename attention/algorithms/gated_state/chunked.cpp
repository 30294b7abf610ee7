// The gated state by chunks. In a chunk with the state S at its left edge, G_t the sum of its log
// decays up to token t, and A_ts(a, b) = sum_d a_td b_sd exp(G_td - G_sd) for s <= t:
//   U = V - diag(beta) (K e^G S + strictly lower A(K, K) U),   solved for U by substitution,
//   Y = (Q e^G) S + A(Q, K) U,   S' = e^G_end S + (K e^(G_end - G))^T U.
// Without beta U is V.
#include <algorithm>
#include <limits>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::gated_state {
namespace {

using at::Tensor;

/// Chunks side by side, [M, c, .], M = N * chunks.
struct Chunks {
  Tensor query, key, value, log_decay, beta;
  bool reads_columns = false;
};

/// g [M, c, w] to sums over i of g_i, s < i <= t, [M, t, s, w]; -inf for s > t.
Tensor sums_between(const Tensor& g) {
  const auto size = g.size(1);
  const Tensor ones = at::ones({size, size}, g.options().dtype(at::kBool).requires_grad(false));
  return g.unsqueeze(2)
      .expand({-1, -1, size, -1})
      .masked_fill(ones.triu().unsqueeze(-1), 0)
      .cumsum(1)
      .masked_fill(ones.triu(1).unsqueeze(-1), -std::numeric_limits<double>::infinity());
}

/// Sums of g [M, c, w] from the left edge up to each token, itself included.
Tensor sums_from_left(const Tensor& g) { return g.cumsum(1); }

/// Sums of g after each token, up to the right edge.
Tensor sums_to_right(const Tensor& g) {
  const Tensor next = at::constant_pad_nd(g.narrow(1, 1, g.size(1) - 1), {0, 0, 0, 1});
  return next.flip({1}).cumsum(1).flip({1});
}

// A gate for each channel has no [c, c] matrix of decays, and one of [c, c, D] would be large. Blocks
// are halved instead, down to single tokens: from a token on the left of a block to one on its right,
// decays are the product of those to the block's middle and those from it.

/// The decays of g [M, 2 h, w] to and from the middle of each block.
struct Halves {
  Tensor to_middle;    ///< [M, h, w], after each token on the left
  Tensor from_middle;  ///< [M, h, w], up to each token on the right, itself included
};

Halves decays_of(const Tensor& g) {
  const auto half = g.size(1) / 2;
  return {sums_to_right(g.narrow(1, 0, half)).exp(), sums_from_left(g.narrow(1, half, half)).exp()};
}

/// x [M, c, w] as blocks of `size` tokens, [M c / size, size, w].
Tensor blocks(const Tensor& x, std::int64_t size) { return x.reshape({-1, size, x.size(2)}); }

/// Up to that many tokens in half a block, sums of products take less time than calls of a matrix
/// product for each block.
constexpr std::int64_t kSmallHalf = 4;

/// a [M, h, w] and b [M, h, w] to a b^T [M, h, h].
Tensor products(const Tensor& a, const Tensor& b) {
  if (a.size(1) > kSmallHalf) return at::bmm(a, b.transpose(1, 2));
  return (a.unsqueeze(2) * b.unsqueeze(1)).sum(-1);
}

/// The least power of two that is at least `length`.
std::int64_t power_of_two(std::int64_t length) {
  std::int64_t power = 1;
  while (power < length) power *= 2;
  return power;
}

/// x [M, c, w] with zeros up to that many tokens.
Tensor with_tokens(const Tensor& x, std::int64_t tokens) {
  const auto missing = tokens - x.size(1);
  return missing == 0 ? x : at::constant_pad_nd(x, {0, 0, 0, missing});
}

/// A(a, b) of a gate for each channel.
Tensor channel_scores(const Tensor& a, const Tensor& b, const Tensor& g) {
  const auto length = a.size(1), whole = power_of_two(length);
  const Tensor left = with_tokens(b, whole), right = with_tokens(a, whole);
  const Tensor decays = with_tokens(g, whole);
  Tensor scores = (left * right).sum(-1).view({-1, 1, 1});  // of blocks, from tokens upwards
  for (std::int64_t half = 1; half < whole; half *= 2) {
    const Halves to = decays_of(blocks(decays, 2 * half));
    const Tensor across = products(blocks(right, 2 * half).narrow(1, half, half) * to.from_middle,
                                   blocks(left, 2 * half).narrow(1, 0, half) * to.to_middle);
    const Tensor inside = scores.view({-1, 2, half, half});
    scores = at::cat({at::constant_pad_nd(inside.select(1, 0), {0, half}),
                      at::cat({across, inside.select(1, 1)}, 2)},
                     1);
  }
  return scores.narrow(1, 0, length).narrow(2, 0, length);
}

/// sum over s <= t of weights_ts e^(G_t - G_s) b_s [M, c, D], the same way; weights are 0 for s >
/// t.
Tensor channel_sums(const Tensor& weights, const Tensor& b, const Tensor& g) {
  const auto length = b.size(1), whole = power_of_two(length), missing = whole - length;
  const Tensor from = with_tokens(b, whole), decays = with_tokens(g, whole);
  const Tensor all = at::constant_pad_nd(weights, {0, missing, 0, missing});
  Tensor sums = blocks(all.diagonal(0, 1, 2).unsqueeze(-1) * from, 1);
  for (std::int64_t half = 1; half < whole; half *= 2) {
    const auto count = whole / (2 * half);
    const Halves to = decays_of(blocks(decays, 2 * half));
    const Tensor across = all.view({-1, count, 2, half, count, 2, half})
                              .select(5, 0)
                              .select(2, 1)  // [M, count, half, count, half]
                              .diagonal(0, 1, 3)
                              .permute({0, 3, 1, 2})
                              .reshape({-1, half, half});
    const Tensor kept = blocks(from, 2 * half).narrow(1, 0, half) * to.to_middle;
    const Tensor inside = sums.view({-1, 2, half, sums.size(2)});
    sums = at::cat({inside.select(1, 0),
                    inside.select(1, 1) +
                        products(across, kept.transpose(1, 2)) * to.from_middle},
                   1);
  }
  return sums.view({-1, whole, sums.size(2)}).narrow(1, 0, length);
}

/// A(a, b) [M, c, c], 0 for s > t.
Tensor scores_of(const Tensor& a, const Tensor& b, const Tensor& g) {
  if (g.defined() && g.size(2) > 1) return channel_scores(a, b, g);
  const Tensor scores = at::bmm(a, b.transpose(1, 2));
  return g.defined() ? scores * sums_between(g).squeeze(-1).exp() : scores.tril();
}

/// What the chunks do to a state and to their outputs, before a state is known.
struct Effects {
  Tensor read;     ///< Q e^G [M, c, D]
  Tensor weights;  ///< A(Q, K) [M, c, c]
  Tensor kept;     ///< K e^(G_end - G) [M, c, D]
  Tensor decay;    ///< e^G_end [M, D or 1, 1]; undefined = 1
  Tensor written;  ///< U for S = 0 [M, c, Dv]
  Tensor erased;   ///< what a state S takes from U: erased S, [M, c, D]; undefined = nothing
  /// Where columns are read, e^G and what the chunk's own tokens give, [M, c, D]; else undefined.
  Tensor reach, inner;
};

Effects effects_of(const Chunks& x) {
  Effects effects{x.query, {}, x.key, {}, x.value, {}, {}, {}};
  if (!x.reads_columns) effects.weights = scores_of(x.query, x.key, x.log_decay);
  Tensor reached = x.key;  // K e^G
  if (x.log_decay.defined()) {
    const Tensor from_left = sums_from_left(x.log_decay);
    const Tensor decay = from_left.exp();
    if (x.reads_columns) {
      effects.reach = decay;
      effects.inner =
          channel_sums(at::bmm(x.query, x.value.transpose(1, 2)).tril(), x.key, x.log_decay);
    } else {
      effects.read = x.query * decay;
    }
    reached = x.key * decay;
    effects.kept = x.key * sums_to_right(x.log_decay).exp();
    effects.decay = decay.select(1, decay.size(1) - 1).unsqueeze(-1);
  }
  if (!x.beta.defined()) return effects;
  // (I + beta strictly lower A(K, K)) [U, erased] = [V, beta K e^G]; the solver takes its diagonal
  // to be 1.
  const Tensor system = (x.beta * scores_of(x.key, x.key, x.log_decay)).tril(-1);
  const Tensor solved = at::linalg_solve_triangular(system, at::cat({x.value, x.beta * reached}, 2),
                                                    /*upper=*/false, /*left=*/true,
                                                    /*unitriangular=*/true);
  effects.written = solved.narrow(2, 0, x.value.size(2));
  effects.erased = solved.narrow(2, x.value.size(2), x.key.size(2));
  return effects;
}

/// x [M, ...] as chunks of each row, [N, chunks, ...].
Tensor by_row(const Tensor& x, std::int64_t rows) {
  return x.unflatten(0, at::IntArrayRef{rows, x.size(0) / rows});
}

/// y [N, tokens, Dv]; `memory` [N, D, Dv] is advanced.
Tensor outputs_of(const Effects& x, Tensor& memory) {
  const auto rows = memory.size(0);
  const auto chunks = x.read.size(0) / rows;
  const Tensor added =
      x.erased.defined() ? Tensor() : by_row(at::bmm(x.kept.transpose(1, 2), x.written), rows);
  const auto at_chunk = [&](const Tensor& all, std::int64_t i) {
    return by_row(all, rows).select(1, i);
  };
  std::vector<Tensor> states, writes;
  for (std::int64_t i = 0; i < chunks; ++i) {
    states.push_back(memory);
    const Tensor before = memory;
    if (x.decay.defined()) memory = memory * at_chunk(x.decay, i);
    if (x.erased.defined()) {
      writes.push_back(at::baddbmm(at_chunk(x.written, i), at_chunk(x.erased, i), before, 1, -1));
      memory = at::baddbmm(memory, at_chunk(x.kept, i).transpose(1, 2), writes.back());
    } else {
      memory = memory + added.select(1, i);
    }
  }
  const Tensor left = at::stack(states, 1).flatten(0, 1);
  if (x.inner.defined()) {
    return at::addcmul(x.inner, at::bmm(x.read, left.transpose(1, 2)), x.reach)
        .view({rows, chunks * x.read.size(1), x.inner.size(2)});
  }
  const Tensor written = writes.empty() ? x.written : at::stack(writes, 1).flatten(0, 1);
  return at::baddbmm(at::bmm(x.weights, written), x.read, left)
      .view({rows, chunks * x.read.size(1), written.size(2)});
}

}  // namespace

Tensor chunked(const Call& call, std::int64_t chunk, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const Tensor& value = call.value;
  const auto type = compute_type(value.scalar_type());
  const auto length = value.size(2);
  const auto size = std::min(chunk, length);
  const auto cut = [&](const Tensor& x) {  // tokens that fill the last chunk change no state
    return x.defined() ? in_blocks(x.to(type).flatten(0, 1), size, 0).flatten(0, 1) : x;
  };
  const Effects effects = effects_of({cut(call.query), cut(call.key), cut(value),
                                      cut(call.log_decay), cut(call.beta), call.reads_columns});
  Tensor memory = state.defined()
                      ? state.flatten(0, 1)
                      : at::zeros({value.size(0) * value.size(1), call.key.size(3), value.size(3)},
                                  value.options().dtype(type));
  const Tensor output = outputs_of(effects, memory).narrow(1, 0, length);
  if (state.defined()) state.copy_(memory.view(state.sizes()));
  return output.unflatten(0, at::IntArrayRef{value.size(0), value.size(1)}).to(value.scalar_type());
}

Tensor parallel(const Call& call, Tensor state) { return chunked(call, call.value.size(2), state); }

}  // namespace attnbench::gated_state
