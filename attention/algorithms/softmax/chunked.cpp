#include <algorithm>
#include <limits>

#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/torch/product.hpp"

namespace attnbench {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr double infinity = std::numeric_limits<double>::infinity();

/// A block of queries against a block of keys.
struct Chunk {
  std::int64_t t0, rows, s0, keys;
};

/// Calls `body` for every pair of chunks in which some query sees some key, query chunks outside.
template <class Begin, class Body, class End>
void for_chunks(const SoftmaxCall& call, std::int64_t query_chunk, std::int64_t key_chunk,
                const Begin& begin, const Body& body, const End& end) {
  for (std::int64_t t0 = 0; t0 < call.length(); t0 += query_chunk) {
    const std::int64_t rows = std::min(query_chunk, call.length() - t0);
    const std::int64_t first = std::max<std::int64_t>(0, t0 + call.offset - call.left);
    const std::int64_t last =
        std::min(call.key_length() - 1, t0 + rows - 1 + call.offset + call.right);
    begin(t0, rows);
    for (std::int64_t s0 = first; s0 <= last; s0 += key_chunk) {
      body(Chunk{t0, rows, s0, std::min(key_chunk, last + 1 - s0)});
    }
    end(t0, rows);
  }
}

/// Sums and scores of 16-bit inputs are kept in float32.
at::ScalarType wide(const at::Tensor& x) {
  return x.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

/// [B, H, T, w] as [B, G, H / G, T, w], grouping the query heads of each key head.
at::Tensor grouped(const at::Tensor& x, const SoftmaxCall& call) {
  const std::int64_t kv_heads = call.k.size(1);
  return x.unflatten(1, {kv_heads, x.size(1) / kv_heads});
}

/// Scores [B, G, H / G, rows, keys] of one chunk, minus infinity where hidden.
at::Tensor scores_of(const SoftmaxCall& call, const Chunk& chunk, const at::Tensor& q) {
  const auto k = call.k.narrow(2, chunk.s0, chunk.keys).unsqueeze(2);
  auto scores = product(q, k.transpose(-2, -1)).to(wide(q));
  if (call.log_decay.defined()) {
    scores.add_(grouped(
        call.added_decay(chunk.t0, chunk.rows, chunk.s0, chunk.keys, scores.scalar_type()), call));
  }
  const std::int64_t lowest = chunk.t0 + call.offset;
  const std::int64_t highest = lowest + chunk.rows - 1;
  const std::int64_t end = chunk.s0 + chunk.keys;
  const auto hide = [&](std::int64_t from, std::int64_t to) {
    if (from >= to) return;
    const auto integers = call.q.options().dtype(at::kLong).requires_grad(false);
    const auto distance = at::arange(from, to, integers).unsqueeze(0) -
                          at::arange(lowest, highest + 1, integers).unsqueeze(1);
    scores.narrow(-1, from - chunk.s0, to - from)
        .masked_fill_((distance < -call.left).logical_or_(distance > call.right), -infinity);
  };
  // Keys that the last row no longer sees, and keys that the first row does not see yet. A mask of
  // the whole chunk would take longer than its product.
  const std::int64_t left = std::clamp(highest - call.left, chunk.s0, end);
  hide(chunk.s0, left);
  hide(std::clamp(lowest + call.right + 1, left, end), end);
  if (call.key_mask.defined()) {
    const auto real = call.key_mask.narrow(1, chunk.s0, chunk.keys);
    scores.masked_fill_(real.logical_not().view({real.size(0), 1, 1, 1, real.size(1)}), -infinity);
  }
  return scores;
}

/// Sums over the key chunks seen so far, relative to the greatest score so far.
struct Partial {
  at::Tensor greatest, sum, output;
};

void take_chunk(const SoftmaxCall& call, const Chunk& chunk, const at::Tensor& q, Partial& part) {
  auto scores = scores_of(call, chunk, q);
  const auto greatest = at::maximum(part.greatest, scores.amax(-1, true));
  // Avoids infinity minus infinity in rows that have not seen a key.
  const auto base = greatest.masked_fill(greatest == -infinity, 0.0);
  const auto weights = scores.sub_(base).exp_();
  const auto factor = (part.greatest - base).exp_();
  part.sum.mul_(factor).add_(weights.sum(-1, true));
  const auto v = call.v.narrow(2, chunk.s0, chunk.keys).unsqueeze(2);
  part.output.mul_(factor).add_(call.log_decay.defined()
                                    ? at::matmul(weights, v.to(weights.scalar_type()))
                                    : product(weights.to(v.scalar_type()), v));
  part.greatest = greatest;
}

/// Output, and the logarithm of the sums, +infinity if there is no key. With log decays the output
/// is of unrounded weights and not rounded itself: their gradients are sums over many tokens that
/// all but cancel, and 16 bits leave the backward pass a row's gradients that do not sum to 0.
std::pair<at::Tensor, at::Tensor> run_forward(const SoftmaxCall& call, std::int64_t query_chunk,
                                              std::int64_t key_chunk) {
  const auto options = call.q.options().requires_grad(false).dtype(wide(call.q));
  auto out = at::empty({call.q.size(0), call.q.size(1), call.length(), call.v.size(3)},
                       call.log_decay.defined() ? options : call.q.options());
  auto lse = at::empty({call.q.size(0), call.q.size(1), call.length(), 1}, options);
  at::Tensor q;
  Partial part;
  const auto begin = [&](std::int64_t t0, std::int64_t rows) {
    q = grouped(call.q.narrow(2, t0, rows), call) * call.scale;
    part.output = at::zeros({q.size(0), q.size(1), q.size(2), rows, call.v.size(3)}, options);
    part.sum = at::zeros({q.size(0), q.size(1), q.size(2), rows, 1}, options);
    part.greatest = at::full_like(part.sum, -infinity);
  };
  const auto end = [&](std::int64_t t0, std::int64_t rows) {
    const auto blind = part.sum == 0;
    const auto sum = part.sum.masked_fill(blind, 1.0);
    grouped(out.narrow(2, t0, rows), call).copy_(part.output.div_(sum));
    grouped(lse.narrow(2, t0, rows), call)
        .copy_((part.greatest + sum.log()).masked_fill_(blind, infinity));
  };
  for_chunks(
      call, query_chunk, key_chunk, begin,
      [&](const Chunk& chunk) { take_chunk(call, chunk, q, part); }, end);
  return {out, lse};
}

struct Chunked : torch::autograd::Function<Chunked> {
  static Variable forward(AutogradContext* context, const Variable&, const Variable&,
                          const Variable&, const Variable&, const SoftmaxCall& call,
                          std::int64_t query_chunk, std::int64_t key_chunk) {
    const auto [out, lse] = run_forward(call, query_chunk, key_chunk);
    save(context, {call, out, lse});
    context->saved_data["query_chunk"] = query_chunk;
    context->saved_data["key_chunk"] = key_chunk;
    return out.to(call.q.scalar_type());
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SavedSoftmax saved = restore(context);
    const SoftmaxCall& call = saved.call;
    const auto dq = at::zeros(call.q.sizes(), call.q.options());
    const auto dk = at::zeros(call.k.sizes(), call.k.options());
    const auto dv = at::zeros(call.v.sizes(), call.v.options());
    const auto d_decay = call.log_decay.defined() ? at::zeros_like(call.log_decay) : at::Tensor();
    at::Tensor q, d_out, lse, delta;
    const auto begin = [&](std::int64_t t0, std::int64_t rows) {
      q = grouped(call.q.narrow(2, t0, rows), call) * call.scale;
      d_out = grouped(gradients[0].narrow(2, t0, rows), call);
      lse = grouped(saved.lse.narrow(2, t0, rows), call);
      delta = (d_out.to(wide(q)) * grouped(saved.out.narrow(2, t0, rows), call)).sum(-1, true);
    };
    const auto body = [&](const Chunk& chunk) {
      const auto weights = scores_of(call, chunk, q).sub_(lse).exp_();
      const auto k = call.k.narrow(2, chunk.s0, chunk.keys).unsqueeze(2);
      const auto v = call.v.narrow(2, chunk.s0, chunk.keys).unsqueeze(2);
      const auto type = q.scalar_type();
      dv.narrow(2, chunk.s0, chunk.keys)
          .add_(product(weights.to(type).transpose(-2, -1), d_out).sum(2));
      // Rounded to 16 bits it would not cancel against delta if one key has all the weight.
      const auto d_weights = at::matmul(d_out.to(wide(q)), v.to(wide(q)).transpose(-2, -1));
      const auto d_wide = (d_weights - delta).mul_(weights);
      if (d_decay.defined()) {
        d_decay.narrow(2, chunk.t0 + call.offset, chunk.rows).add_(d_wide.sum(-1).flatten(1, 2));
        d_decay.narrow(2, chunk.s0, chunk.keys).sub_(d_wide.sum(-2).flatten(1, 2));
      }
      const auto d_scores = d_wide.to(type);
      dk.narrow(2, chunk.s0, chunk.keys).add_(product(d_scores.transpose(-2, -1), q).sum(2));
      grouped(dq.narrow(2, chunk.t0, chunk.rows), call).add_(product(d_scores, k), call.scale);
    };
    for_chunks(call, context->saved_data.at("query_chunk").toInt(),
               context->saved_data.at("key_chunk").toInt(), begin, body,
               [](std::int64_t, std::int64_t) {});
    return {dq, dk, dv, d_decay, {}, {}, {}};
  }
};

}  // namespace

at::Tensor softmax_chunked(const SoftmaxCall& given, std::int64_t query_chunk,
                           std::int64_t key_chunk) {
  const SoftmaxCall call = given.without_padding();
  // LibTorch takes no undefined input.
  const at::Tensor decay = call.log_decay.defined()
                               ? call.log_decay
                               : at::empty({0}, call.q.options().requires_grad(false));
  return Chunked::apply(call.q, call.k, call.v, decay, call, query_chunk, key_chunk);
}

}  // namespace attnbench
