#include "attention/algorithms/prefix_pool/chunks.hpp"

#include <array>
#include <cmath>
#include <limits>
#include <vector>

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

/// The score of a key that no latent takes.
constexpr double kNoScore = -std::numeric_limits<double>::infinity();
constexpr std::int64_t kFine = 16;   // tokens per block of the direct form
constexpr std::int64_t kGroup = 32;  // chunks per call of it, to bound its memory
constexpr std::int64_t kAll = std::numeric_limits<std::int64_t>::max();

/// How far the running maximum may rise within a chunk of the product form: exp(-limit), and the
/// rounding unit below it, must still be normal numbers.
double range_limit(const Tensor& x) { return x.scalar_type() == at::kDouble ? 600 : 70; }

Tensor batched_upper_ones(const Tensor& like) {
  const auto size = like.size(1);
  return at::ones({size, size}, like.options()).triu_().expand({like.size(0), size, size});
}

Chunks select(const Chunks& x, const Tensor& rows) {
  const auto of = [&](const Tensor& tensor) { return tensor.index_select(0, rows); };
  return {of(x.query),
          x.kind,
          of(x.k),
          of(x.v),
          of(x.e),
          {of(x.left.maximum), of(x.left.normaliser), of(x.left.sum)},
          of(x.right_maximum),
          of(x.decay)};
}

// ---- products: one scale, the right maximum, for all tokens of a chunk

struct Products {
  Tensor normaliser;  ///< relative to right_maximum [M, c, L]
  Tensor p;           ///< [M, c, L]
  Tensor gain;        ///< p / normaliser
  Tensor sum;         ///< the carry's, relative to right_maximum [M, L, D]
  Tensor weights;     ///< of token s in token t [M, t, s]
};

Products products_of(const Chunks& x) {
  Products made;
  made.normaliser = x.e.cumsum(1)
                        .add_((x.decay * x.left.normaliser).unsqueeze(1))
                        .clamp_min_(std::exp(-range_limit(x.e) - 2));
  made.p = weights_of(x.query, x.kind, x.right_maximum.unsqueeze(1), made.normaliser);
  made.gain = made.p / made.normaliser;
  made.sum = x.left.sum * x.decay.unsqueeze(-1);
  made.weights = at::bmm(made.gain, x.e.transpose(1, 2)).tril_();
  return made;
}

Tensor product_outputs(const Chunks& x) {
  const Products made = products_of(x);
  return at::bmm(made.weights, x.v).baddbmm_(made.gain, made.sum);
}

ChunkGradients product_gradients(const Chunks& x, const Tensor& g) {
  const Products made = products_of(x);
  const Tensor scores = at::bmm(g, x.v.transpose(1, 2)).tril_();
  ChunkGradients to;
  const Tensor dp =
      at::bmm(g, made.sum.transpose(1, 2)).baddbmm_(scores, x.e).div_(made.normaliser);
  to.query = query_gradient(made.p, dp, x.kind);
  to.v = at::bmm(made.weights.transpose(1, 2), g);
  const Tensor flow = made.gain * subtracted(made.p, dp, x.kind);
  // Summed from the right: early tokens have large gains, which a difference would lose to
  // rounding.
  to.k = at::bmm(scores.transpose(1, 2), made.gain)
             .sub_(at::bmm(batched_upper_ones(flow), flow))
             .mul_(x.e);
  to.sum = at::bmm(made.gain.transpose(1, 2), g).mul_(x.decay.unsqueeze(-1));
  to.normaliser = flow.sum(1).mul_(x.decay);
  return to;
}

// ---- direct: every pair of tokens at the scale of the later one

struct Direct {
  Tensor e;        ///< exp(k_s - m_t), 0 for s > t [M, t, s, L]
  Tensor decay;    ///< exp(left.maximum - m_t) [M, t, L]
  Tensor inverse;  ///< 1 / normaliser_t [M, t, L]
  Tensor p;        ///< [M, t, L]
  Tensor gain;     ///< p_t / normaliser_t
  Tensor weights;  ///< [M, t, s]
};

Direct direct_of(const Chunks& x) {
  const auto size = x.k.size(1);
  const Tensor m = at::maximum(std::get<0>(at::cummax(x.k, 1)), x.left.maximum.unsqueeze(1));
  const Tensor later =
      at::ones({size, size}, x.k.options().dtype(at::kBool)).triu_(1).unsqueeze(-1);
  Direct made;
  made.e = x.k.unsqueeze(1)
               .sub(m.masked_fill(m == kNoScore, 0).unsqueeze(2))
               .masked_fill_(later, kNoScore)
               .exp_();
  made.decay = shrink(x.left.maximum.unsqueeze(1), m);
  const Tensor normaliser = made.e.sum(2).addcmul_(made.decay, x.left.normaliser.unsqueeze(1));
  made.inverse = reciprocal_or_zero(normaliser);
  made.p = weights_of(x.query, x.kind, m, normaliser);
  made.gain = made.p * made.inverse;
  made.weights = (made.e * made.gain.unsqueeze(2)).sum(-1);
  return made;
}

Tensor direct_outputs(const Chunks& x) {
  const Direct made = direct_of(x);
  return at::bmm(made.weights, x.v).baddbmm_(made.gain * made.decay, x.left.sum);
}

ChunkGradients direct_gradients(const Chunks& x, const Tensor& g) {
  const Direct made = direct_of(x);
  const Tensor scores = at::bmm(g, x.v.transpose(1, 2)).unsqueeze(-1);
  ChunkGradients to;
  const Tensor dp = (made.e * scores)
                        .sum(2)
                        .addcmul_(made.decay, at::bmm(g, x.left.sum.transpose(1, 2)))
                        .mul_(made.inverse);
  const Tensor less = subtracted(made.p, dp, x.kind);
  to.query = query_gradient(made.p, dp, x.kind);
  to.v = at::bmm(made.weights.transpose(1, 2), g);
  to.k = made.e.mul(made.gain.unsqueeze(2)).mul_(scores - less.unsqueeze(2)).sum(1);
  const Tensor sent = made.gain * made.decay;
  to.sum = at::bmm(sent.transpose(1, 2), g);
  to.normaliser = (sent * less).sum(1);
  return to;
}

// ---- chunks of too wide a range: smaller chunks, then direct

Tensor fine_outputs(const Chunks& x) {
  Carry carry = x.left;
  std::vector<Tensor> parts;
  for (const Piece& piece : pieces_of(x.k.size(1), kFine, kAll)) {
    const Tensor part = direct_outputs(cut(x.query, x.kind, x.k, x.v, piece, carry));
    parts.push_back(part.view({x.k.size(0), piece.tokens(), x.v.size(2)}));
  }
  return at::cat(parts, 1);
}

ChunkGradients fine_gradients(const Chunks& x, const Tensor& g) {
  Carry carry = x.left;
  const auto pieces = pieces_of(x.k.size(1), kFine, kAll);
  std::vector<Chunks> cuts;
  for (const Piece& piece : pieces) cuts.push_back(cut(x.query, x.kind, x.k, x.v, piece, carry));
  ChunkGradients to{at::empty_like(x.query), at::empty_like(x.k), at::empty_like(x.v),
                    at::zeros_like(x.left.sum), at::zeros_like(x.left.normaliser)};
  for (std::size_t i = pieces.size(); i-- > 0;) {
    const auto tokens = pieces[i].tokens();
    const auto of = [&](const Tensor& tensor) { return tensor.narrow(1, pieces[i].begin, tokens); };
    ChunkGradients part = direct_gradients(cuts[i], of(g).reshape({-1, pieces[i].size, g.size(2)}));
    sweep_left(cuts[i], part, to.sum, to.normaliser);
    of(to.query).copy_(part.query.view(of(to.query).sizes()));
    of(to.k).copy_(part.k.view(of(to.k).sizes()));
    of(to.v).copy_(part.v.view(of(to.v).sizes()));
  }
  return to;
}

/// Which chunks have too wide a range for the products; undefined if none has.
struct Sorted {
  Tensor narrow, wide;
};

Sorted sorted(const Chunks& x) {
  // Latents without a visible token by the chunk's end are harmless; those whose first visible
  // token is not the chunk's first are not.
  const Tensor start = at::maximum(x.left.maximum, x.k.select(1, 0));
  const Tensor rise = x.right_maximum.sub(start).masked_fill_(x.right_maximum == kNoScore, 0);
  const Tensor wide = rise.amax(1) > range_limit(x.k);
  if (!wide.any().item<bool>()) return {};
  return {wide.logical_not().nonzero().flatten(), wide.nonzero().flatten()};
}

}  // namespace

Chunks cut(const Tensor& query, Query kind, const Tensor& k, const Tensor& v, const Piece& piece,
           Carry& carry) {
  const auto n = k.size(0);
  const auto m = n * piece.count;
  const auto of = [&](const Tensor& x) {
    return x.narrow(1, piece.begin, piece.tokens()).reshape({m, piece.size, x.size(2)});
  };
  Chunks x{query.defined() ? of(query) : query, kind, of(k), of(v), {}, {}, {}, {}};
  const std::array<std::int64_t, 2> rows = {n, piece.count};
  const Tensor tops = x.k.amax(1).unflatten(0, rows);
  const Tensor edges = std::get<0>(at::cummax(at::cat({carry.maximum.unsqueeze(1), tops}, 1), 1));
  x.left.maximum = edges.narrow(1, 0, piece.count).flatten(0, 1);
  x.right_maximum = edges.narrow(1, 1, piece.count).flatten(0, 1);
  x.e = shrink(x.k, x.right_maximum.unsqueeze(1));
  x.decay = shrink(x.left.maximum, x.right_maximum);
  const Tensor decay = x.decay.unflatten(0, rows);
  Tensor normalisers = x.e.sum(1).unflatten(0, rows);
  Tensor sums = at::bmm(x.e.transpose(1, 2), x.v).unflatten(0, rows);
  carry = {edges.select(1, piece.count), carry_over(normalisers, decay, carry.normaliser, false),
           carry_over(sums, decay.unsqueeze(-1), carry.sum, false)};
  x.left.normaliser = normalisers.flatten(0, 1);
  x.left.sum = sums.flatten(0, 1);
  return x;
}

Tensor outputs(const Chunks& x) {
  const Sorted kinds = sorted(x);
  if (!kinds.wide.defined()) return product_outputs(x);
  const Tensor y = at::empty_like(x.v);
  if (kinds.narrow.numel() > 0) {
    y.index_copy_(0, kinds.narrow, product_outputs(select(x, kinds.narrow)));
  }
  for (const Tensor& group : kinds.wide.split(kGroup)) {
    y.index_copy_(0, group, fine_outputs(select(x, group)));
  }
  return y;
}

ChunkGradients gradients(const Chunks& x, const Tensor& g) {
  const Sorted kinds = sorted(x);
  if (!kinds.wide.defined()) return product_gradients(x, g);
  ChunkGradients to{at::empty_like(x.query), at::empty_like(x.k), at::empty_like(x.v),
                    at::empty_like(x.left.sum), at::empty_like(x.left.normaliser)};
  const auto put = [&](const Tensor& rows, const ChunkGradients& part) {
    to.query.index_copy_(0, rows, part.query);
    to.k.index_copy_(0, rows, part.k);
    to.v.index_copy_(0, rows, part.v);
    to.sum.index_copy_(0, rows, part.sum);
    to.normaliser.index_copy_(0, rows, part.normaliser);
  };
  if (kinds.narrow.numel() > 0) {
    put(kinds.narrow, product_gradients(select(x, kinds.narrow), g.index_select(0, kinds.narrow)));
  }
  for (const Tensor& group : kinds.wide.split(kGroup)) {
    put(group, fine_gradients(select(x, group), g.index_select(0, group)));
  }
  return to;
}

void sweep_left(const Chunks& x, ChunkGradients& to, Tensor& sum, Tensor& normaliser) {
  const auto n = sum.size(0);
  const std::array<std::int64_t, 2> rows = {n, x.k.size(0) / n};
  const Tensor decay = x.decay.unflatten(0, rows);
  sum = carry_over(to.sum.unflatten(0, rows), decay.unsqueeze(-1), sum, true);
  normaliser = carry_over(to.normaliser.unflatten(0, rows), decay, normaliser, true);
  to.v.baddbmm_(x.e, to.sum);
  to.k.addcmul_(x.e, at::bmm(x.v, to.sum.transpose(1, 2)).sub_(to.normaliser.unsqueeze(1)));
}

}  // namespace attnbench::prefix_pool
