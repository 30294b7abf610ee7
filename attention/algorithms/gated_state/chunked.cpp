// The gated state by chunks. In a chunk with the state S at its left edge, G_t the sum of its log
// decays up to token t, and A_ts(a, b) = sum_d a_td b_sd exp(G_td - G_sd) for s <= t:
//   U = V - diag(beta) (K e^G S + strictly lower A(K, K) U),   solved for U by substitution,
//   Y = (Q e^G) S + A(Q, K) U,   S' = e^G_end S + (K e^(G_end - G))^T U.
// Without beta U is V. With a removal key R and B = beta R,
//   U = -(R e^(G - g)) S - A'(R, B) U - A'(R, K) V,   Y = (Q e^G) S + A(Q, B) U + A(Q, K) V,
//   S' = e^G_end S + (B e^(G_end - G))^T U + (K e^(G_end - G))^T V,
// where A'_ts(R, b) = sum_d r_td b_sd exp(G_(t-1)d - G_sd) for s < t, and 0 for s = t.
#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::gated_state {
namespace {

using at::Tensor;

/// Chunks side by side, [M, c, .], M = N * chunks.
struct Chunks {
  Tensor query, key, value, log_decay, beta, removal;
  bool reads_columns = false;
  double steepest = std::numeric_limits<double>::infinity();
};

/// g [M, c, 1] to sums over i of g_i, s < i <= t, [M, t, s]; -inf for s > t.
Tensor sums_between(const Tensor& g) {
  const auto size = g.size(1);
  const Tensor ones = at::ones({size, size}, g.options().dtype(at::kBool).requires_grad(false));
  return g.expand({-1, -1, size})
      .masked_fill(ones.triu(), 0)
      .cumsum(1)
      .masked_fill(ones.triu(1), -std::numeric_limits<double>::infinity());
}

/// Sums of g [M, c, 1] after each token, up to the right edge.
Tensor sums_to_right(const Tensor& g) {
  const Tensor next = at::constant_pad_nd(g.narrow(1, 1, g.size(1) - 1), {0, 0, 0, 1});
  return next.flip({1}).cumsum(1).flip({1});
}

/// What tokens of a chunk are to each other and to its edges. With gates of channels `a` may have
/// several rows a token, one after the other: r; and so may b: k.
struct Within {
  Tensor scores;  ///< A(a, b) [M, c r, c k], 0 for s > t
  Tensor ahead;   ///< a e^G [M, c r, D]
  Tensor kept;    ///< b e^(G_end - G) [M, c k, D]
  Tensor total;   ///< G_end [M, 1, w]; undefined = no decay
};

// A gate for each channel has no [c, c] matrix of decays, and one of [c, c, D] would be large.
// Blocks are doubled instead, from single tokens up: a token on the right of a block sees those on
// its left through the block's middle, by decays from there and to there.

/// Up to that many tokens in half a block, sums of products take less time than calls of a matrix
/// product for each block.
constexpr std::int64_t kSmallHalf = 4;

/// a [M, h r, D] and b [M, h k, D] to a b^T [M, h r, h k].
Tensor products(const Tensor& a, const Tensor& b) {
  if (b.size(1) > kSmallHalf) return at::bmm(a, b.transpose(1, 2));
  return (a.unsqueeze(2) * b.unsqueeze(1)).sum(-1);
}

/// Blocks [M, h, .] two by two, [M / 2, 2, h, .].
Tensor halves(const Tensor& x) { return x.view({-1, 2, x.size(1), x.size(2)}); }

/// Blocks of h tokens: `ahead` [M c / h, h r, D] and `kept` [M c / h, h k, D] up to the edges of
/// each.
class Blocks {
 public:
  /// The blocks of single tokens: a is [M, c r, D], b [M, c k, D] and g [M, c, D].
  Blocks(const Tensor& a, const Tensor& b, const Tensor& g) {
    const auto of_token = [&](const Tensor& x) {
      return x.reshape({-1, x.size(1) / g.size(1), x.size(2)});
    };
    edges = {{}, of_token(a) * of_token(g).exp(), of_token(b), of_token(g)};
  }

  explicit Blocks(Within begun) : edges(std::move(begun)) {}

  /// Rows of `kept`, h k.
  std::int64_t size() const { return edges.kept.size(1); }
  Tensor right() const { return halves(edges.ahead).select(1, 1); }
  Tensor left() const { return halves(edges.kept).select(1, 0); }

  /// Makes one block of two.
  void grow() {
    const Tensor total = halves(edges.total), decay = total.exp();  // [M, 2, 1, D]
    const Tensor left = decay.narrow(1, 0, 1), right = decay.narrow(1, 1, 1);
    const Tensor one = at::ones_like(left).detach();
    edges.ahead = (halves(edges.ahead) * at::cat({one, left}, 1)).flatten(1, 2);
    edges.kept = (halves(edges.kept) * at::cat({right, one}, 1)).flatten(1, 2);
    edges.total = total.sum(1);
  }

  Within edges;  ///< scores only of blocks to begin with
};

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

/// The same without tokens from `length` on, of r and of k rows each.
Within first_tokens(const Within& x, std::int64_t length, std::int64_t r, std::int64_t k) {
  const auto to = length * r, from = length * k;
  return {x.scores.defined() ? x.scores.narrow(1, 0, to).narrow(2, 0, from) : x.scores,
          x.ahead.narrow(1, 0, to), x.kept.narrow(1, 0, from), x.total};
}

/// Up to that sum of log decays a block is computed through its middle, at once.
constexpr double kSteepestBlock = 20;

/// Tokens of the blocks to begin with, a power of two up to `whole`.
std::int64_t first_size(double steepest, std::int64_t whole) {
  std::int64_t size = 1;
  while (2 * size <= whole && static_cast<double>(2 * size) * steepest <= kSteepestBlock) size *= 2;
  return size;
}

/// The blocks of `size` tokens, with their scores, by decays to their middles and from there.
Within through_middles(const Tensor& a, const Tensor& b, const Tensor& g, std::int64_t size) {
  const auto rows = [&](const Tensor& x) { return x.size(1) / g.size(1); };
  const auto cut = [&](const Tensor& x) { return x.reshape({-1, size, rows(x), x.size(2)}); };
  const Tensor sums = cut(g).cumsum(1);
  const Tensor middle = sums.narrow(1, size / 2 - 1, 1), total = sums.narrow(1, size - 1, 1);
  const Tensor to = cut(a) * (sums - middle).exp(), from = cut(b) * (middle - sums).exp();
  const Tensor later = at::ones({size, size}, g.options().dtype(at::kBool).requires_grad(false))
                           .triu(1)
                           .repeat_interleave(rows(a), 0)
                           .repeat_interleave(rows(b), 1);
  return {products(to.flatten(1, 2), from.flatten(1, 2)).masked_fill(later, 0),
          (to * middle.exp()).flatten(1, 2), (from * (total - middle).exp()).flatten(1, 2),
          total.flatten(1, 2)};
}

/// The same where each channel has its own gate.
Within within_channels(const Tensor& a, const Tensor& b, const Tensor& g,
                       double steepest = std::numeric_limits<double>::infinity()) {
  const auto length = g.size(1), whole = power_of_two(length);
  const auto r = a.size(1) / length, k = b.size(1) / length;
  const Tensor from = with_tokens(b, whole * k), to = with_tokens(a, whole * r);
  const Tensor gates = with_tokens(g, whole);
  const auto size = first_size(steepest, whole);
  Blocks blocks =
      size == 1 ? Blocks(to, from, gates) : Blocks(through_middles(to, from, gates, size));
  Tensor scores = blocks.edges.scores;
  if (size == 1) {
    scores = products(to.reshape({-1, r, to.size(2)}), from.reshape({-1, k, from.size(2)}));
  }
  while (blocks.size() < whole * k) {
    const Tensor across = products(blocks.right(), blocks.left()), inside = halves(scores);
    scores = at::cat({at::constant_pad_nd(inside.select(1, 0), {0, blocks.size()}),
                      at::cat({across, inside.select(1, 1)}, 2)},
                     1);
    blocks.grow();
  }
  blocks.edges.scores = scores;
  return first_tokens(blocks.edges, length, r, k);
}

/// The blocks right of a middle and left of it, of weights [M, c, c] cut into blocks of 2 h tokens:
/// [M c / 2 h, h, h].
Tensor weights_across(const Tensor& weights, std::int64_t half) {
  const auto count = weights.size(1) / (2 * half);
  return weights.view({-1, count, 2, half, count, 2, half})
      .select(5, 0)
      .select(2, 1)
      .diagonal(0, 1, 3)
      .permute({0, 3, 1, 2})
      .reshape({-1, half, half});
}

struct ColumnsRead {
  Tensor sums;   ///< sum over s <= t of weights_ts e^(G_t - G_s) b_s [M, c, D]
  Within edges;  ///< of a = 1, without scores
};

/// Weights [M, c, c] are 0 for s > t.
ColumnsRead read_columns(const Tensor& weights, const Tensor& b, const Tensor& g) {
  const auto length = b.size(1), whole = power_of_two(length), missing = whole - length;
  const Tensor from = with_tokens(b, whole);
  const Tensor all = at::constant_pad_nd(weights, {0, missing, 0, missing});
  Blocks blocks(at::ones_like(from).detach(), from, with_tokens(g, whole));
  Tensor sums = (all.diagonal(0, 1, 2).unsqueeze(-1) * from).view(blocks.edges.kept.sizes());
  while (blocks.size() < whole) {
    const Tensor across = weights_across(all, blocks.size()), inside = halves(sums);
    const Tensor outside = products(across, blocks.left().transpose(1, 2)) * blocks.right();
    sums = at::cat({inside.select(1, 0), inside.select(1, 1) + outside}, 1);
    blocks.grow();
  }
  return {sums.narrow(1, 0, length), first_tokens(blocks.edges, length, 1, 1)};
}

Within within_chunk(const Tensor& a, const Tensor& b, const Tensor& g) {
  if (g.defined() && g.size(2) > 1) return within_channels(a, b, g);
  const Tensor scores = at::bmm(a, b.transpose(1, 2));
  if (!g.defined()) return {scores.tril(), a, b, {}};
  const Tensor from_left = g.cumsum(1);
  return {scores * sums_between(g).exp(), a * from_left.exp(), b * sums_to_right(g).exp(),
          from_left.narrow(1, g.size(1) - 1, 1)};
}

/// What the chunks do to a state and to their outputs, before a state is known.
/// With a removal key k = 2 rows stand for a token where there is one else: B's, then K's.
struct Effects {
  Tensor read;     ///< Q e^G [M, c, D]
  Tensor weights;  ///< A(Q, K) [M, c, c k]
  Tensor kept;     ///< K e^(G_end - G) [M, c k, D]
  Tensor decay;    ///< e^G_end [M, D or 1, 1]; undefined = 1
  Tensor written;  ///< U for S = 0 [M, c k, Dv]
  Tensor erased;   ///< what a state S takes from U: erased S, [M, c k, D]; undefined = nothing
  /// Where columns are read, e^G and what the chunk's own tokens give, [M, c, D]; else undefined.
  Tensor reach, inner;
};

/// The two of each token, one after the other: [M, 2 c, .].
Tensor in_turn(const Tensor& first, const Tensor& second) {
  return at::stack({first, second}, 2).flatten(1, 2);
}

/// One of two in turn, along `dim`.
Tensor one_of(const Tensor& both, std::int64_t dim, std::int64_t i) {
  return both.unflatten(dim, at::IntArrayRef{both.size(dim) / 2, 2}).select(dim + 1, i);
}

/// What queries and keys of a chunk are to its keys. Where each channel has a gate, most of the
/// work is the same for both.
std::pair<Within, Within> of_queries_and_keys(const Chunks& x) {
  if (!x.log_decay.defined() || x.log_decay.size(2) == 1) {
    return {within_chunk(x.query, x.key, x.log_decay), within_chunk(x.key, x.key, x.log_decay)};
  }
  const Within both = within_channels(in_turn(x.query, x.key), x.key, x.log_decay);
  const auto one = [&](std::int64_t i) {
    return Within{one_of(both.scores, 1, i), one_of(both.ahead, 1, i), both.kept, both.total};
  };
  return {one(0), one(1)};
}

/// x [M, c, .] a token later; its last token is lost, and the first one is `first` or 0.
Tensor delayed(const Tensor& x, const Tensor& first = {}) {
  const Tensor rest = x.narrow(1, 0, x.size(1) - 1);
  return first.defined() ? at::cat({first, rest}, 1) : at::constant_pad_nd(rest, {0, 0, 1, 0});
}

/// The effects where a removal key erases.
Effects effects_of_removal(const Chunks& x) {
  // As of the token before, whose decay is the last that a removal key sees.
  const Tensor next =
      at::constant_pad_nd(x.removal.narrow(1, 1, x.removal.size(1) - 1), {0, 0, 0, 1});
  const Within within = within_channels(in_turn(x.query, next), in_turn(x.beta * x.removal, x.key),
                                        x.log_decay, x.steepest);
  const Tensor found = delayed(one_of(within.scores, 1, 1));  // A' [M, c, 2 c]
  const Tensor ahead = delayed(one_of(within.ahead, 1, 1), x.removal.narrow(1, 0, 1));
  const Tensor solved = at::linalg_solve_triangular(
      one_of(found, 2, 0), at::cat({at::bmm(one_of(found, 2, 1), x.value), ahead}, 2),
      /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
  const Tensor taken = solved.narrow(2, 0, x.value.size(2));
  const Tensor erased = solved.narrow(2, x.value.size(2), x.key.size(2));
  Effects effects;
  effects.read = one_of(within.ahead, 1, 0);
  effects.weights = one_of(within.scores, 1, 0);
  effects.kept = within.kept;
  effects.decay = within.total.transpose(1, 2).exp();
  effects.written = in_turn(-taken, x.value);
  effects.erased = in_turn(erased, at::zeros_like(erased));
  return effects;
}

Effects effects_of(const Chunks& x) {
  if (x.removal.defined()) return effects_of_removal(x);
  Effects effects;
  effects.written = x.value;
  Within within, keys;
  if (x.reads_columns) {
    const Tensor weights = at::bmm(x.query, x.value.transpose(1, 2)).tril();
    const ColumnsRead columns = read_columns(weights, x.key, x.log_decay);
    effects.read = x.query;
    effects.inner = columns.sums;
    effects.reach = columns.edges.ahead;
    within = columns.edges;
  } else {
    if (x.beta.defined()) {
      std::tie(within, keys) = of_queries_and_keys(x);
    } else {
      within = within_chunk(x.query, x.key, x.log_decay);
    }
    effects.weights = within.scores;
    effects.read = within.ahead;
  }
  effects.kept = within.kept;
  if (within.total.defined()) effects.decay = within.total.transpose(1, 2).exp();
  if (!x.beta.defined()) return effects;
  // (I + beta strictly lower A(K, K)) [U, erased] = [V, beta K e^G]; the solver takes its diagonal
  // to be 1.
  const Tensor solved = at::linalg_solve_triangular(
      (x.beta * keys.scores).tril(-1), at::cat({x.value, x.beta * keys.ahead}, 2),
      /*upper=*/false, /*left=*/true, /*unitriangular=*/true);
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
    if (x.erased.defined()) {
      if (x.decay.defined()) memory = memory * at_chunk(x.decay, i);
      writes.push_back(at::baddbmm(at_chunk(x.written, i), at_chunk(x.erased, i), before, 1, -1));
      memory = at::baddbmm(memory, at_chunk(x.kept, i).transpose(1, 2), writes.back());
    } else {
      memory = x.decay.defined() ? at::addcmul(added.select(1, i), memory, at_chunk(x.decay, i))
                                 : memory + added.select(1, i);
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
  const Effects effects =
      effects_of({cut(call.scaled_query()), cut(call.key), cut(value), cut(call.log_decay),
                  cut(call.beta), cut(call.removal), call.reads_columns, call.steepest});
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
