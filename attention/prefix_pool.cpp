#include "attention/prefix_pool.hpp"

#include <limits>

namespace attnbench::prefix_pool {
namespace {

using at::Tensor;

// Tokens summed by doubling before the block ends are themselves scanned: work stays linear in T.
constexpr std::int64_t kBlock = 16;

/// Inclusive sums over s <= t of exp(m_s - m_t) a_s along dimension 1. a [N, T, L, W]; m [N, T, L],
/// not decreasing in t.
Tensor prefix_sums(Tensor a, Tensor m) {
  const std::int64_t length = a.size(1);
  const std::int64_t blocks = (length + kBlock - 1) / kBlock;
  const std::int64_t padding = blocks * kBlock - length;
  if (padding > 0) {
    a = at::constant_pad_nd(a, {0, 0, 0, 0, 0, padding});
    m = at::cat({m, m.narrow(1, length - 1, 1).expand({-1, padding, -1})}, 1);
  }
  a = a.unflatten(1, at::IntArrayRef{blocks, kBlock});
  m = m.unflatten(1, at::IntArrayRef{blocks, kBlock});
  for (std::int64_t reach = 1; reach < kBlock; reach *= 2) {
    const std::int64_t rest = kBlock - reach;
    const Tensor fade = shrink(m.narrow(2, 0, rest), m.narrow(2, reach, rest)).unsqueeze(-1);
    a = at::cat(
        {a.narrow(2, 0, reach), at::addcmul(a.narrow(2, reach, rest), fade, a.narrow(2, 0, rest))},
        2);
  }
  if (blocks > 1) {
    const Tensor ends = m.select(2, kBlock - 1);
    const Tensor before = prefix_sums(a.select(2, kBlock - 1), ends).narrow(1, 0, blocks - 1);
    const Tensor fade =
        shrink(ends.narrow(1, 0, blocks - 1).unsqueeze(2), m.narrow(1, 1, blocks - 1));
    a = at::cat({a.narrow(1, 0, 1),
                 at::addcmul(a.narrow(1, 1, blocks - 1), fade.unsqueeze(-1), before.unsqueeze(2))},
                1);
  }
  return a.flatten(1, 2).narrow(1, 0, length);
}

}  // namespace

Tensor shrink(const Tensor& from, const Tensor& to) {
  return from.sub(to.masked_fill(to == -std::numeric_limits<double>::infinity(), 0)).exp_();
}

Tensor reciprocal_or_zero(const Tensor& x) { return at::reciprocal(x).masked_fill_(x == 0, 0); }

Tensor weights_of(const Tensor& query, Query kind) {
  return kind == Query::logits ? at::softmax(query, -1) : query;
}

Tensor query_gradient(const Tensor& weights, const Tensor& gradient, Query kind) {
  if (kind == Query::weights) return gradient;
  const Tensor weighted = weights * gradient;
  return at::addcmul(weighted, weights, weighted.sum(-1, true), -1);
}

at::ScalarType compute_type(at::ScalarType type) {
  return type == at::kHalf || type == at::kBFloat16 ? at::kFloat : type;
}

Carry Carry::flat() const {
  const auto n = maximum.size(0) * maximum.size(1);
  return {maximum.view({n, maximum.size(2)}), normaliser.view({n, maximum.size(2)}),
          sum.view({n, sum.size(2), sum.size(3)})};
}

Carry empty_carry(std::int64_t batch, std::int64_t heads, std::int64_t latents,
                  std::int64_t value_dim, const at::TensorOptions& like) {
  const auto options = like.dtype(compute_type(c10::typeMetaToScalarType(like.dtype())));
  return {at::full({batch, heads, latents}, -std::numeric_limits<double>::infinity(), options),
          at::zeros({batch, heads, latents}, options),
          at::zeros({batch, heads, latents, value_dim}, options)};
}

Tensor materialised(const Tensor& query, Query kind, const Tensor& scores, const Tensor& values,
                    Carry* carry) {
  const at::AutoGradMode record(carry == nullptr && at::GradMode::is_enabled());
  const auto type = compute_type(values.scalar_type());
  const Tensor p = weights_of(query.to(type), kind).flatten(0, 1);
  const Tensor k = scores.to(type).flatten(0, 1);
  const Tensor v = at::constant_pad_nd(values.to(type).flatten(0, 1), {0, 1}, 1);
  const std::int64_t length = k.size(1);

  // The result does not depend on the maximum, so that no gradient flows through it.
  Tensor m = std::get<0>(at::cummax(k.detach(), 1));
  const Carry past = carry ? carry->flat() : Carry{};
  if (carry) m = at::maximum(m, past.maximum.unsqueeze(1));
  Tensor a = shrink(k, m).unsqueeze(-1) * v.unsqueeze(2);
  if (carry) {
    const Tensor first = at::cat({past.sum, past.normaliser.unsqueeze(-1)}, -1);
    a.select(1, 0).addcmul_(first, shrink(past.maximum, m.select(1, 0)).unsqueeze(-1));
  }
  a = prefix_sums(a, m);

  const Tensor normaliser = a.select(-1, v.size(2) - 1);
  const Tensor gain = p / normaliser.masked_fill(normaliser == 0, 1);
  const Tensor y = at::matmul(gain.unsqueeze(-2), a.narrow(-1, 0, v.size(2) - 1)).squeeze(-2);
  if (carry) {
    const Tensor last = a.select(1, length - 1);
    past.maximum.copy_(m.select(1, length - 1));
    past.normaliser.copy_(last.select(-1, v.size(2) - 1));
    past.sum.copy_(last.narrow(-1, 0, v.size(2) - 1));
  }
  return y.view(values.sizes()).to(values.scalar_type());
}

}  // namespace attnbench::prefix_pool
