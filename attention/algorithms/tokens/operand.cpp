#include "attention/algorithms/tokens/operand.hpp"

#include <cmath>
#include <limits>
#include <vector>

namespace attnbench {
namespace {

using at::Tensor;

Tensor hidden_tokens(const Tensor& x) {
  return x.narrow(-1, 0, 1) == -std::numeric_limits<double>::infinity();
}

/// The products x_i x_j of an expansion, i <= j: i and j, and what each is multiplied by, since two
/// of the square's D^2 are one here.
struct Pairs {
  Tensor first, second, scale;
};

Pairs pairs_of(const Tensor& x, Expansion expansion) {
  const std::int64_t dim = x.size(-1);
  const double one =
      expansion == Expansion::taylor2 ? 1 / std::sqrt(2 * static_cast<double>(dim)) : 1;
  const Tensor both =
      at::triu_indices(dim, dim, 0, x.options().dtype(at::kLong).requires_grad(false));
  const Tensor first = both.select(0, 0), second = both.select(0, 1);
  const Tensor scale =
      at::full({first.size(0)}, std::sqrt(2.0) * one, x.options().requires_grad(false));
  return {first, second, scale.masked_fill(first == second, one)};
}

/// What taylor2 multiplies x by.
double linear_scale(std::int64_t dim) { return std::pow(static_cast<double>(dim), -0.25); }

Tensor expanded(const Tensor& whole, Expansion expansion) {
  const Tensor hidden = hidden_tokens(whole);
  const Tensor x = whole.masked_fill(hidden, 0);
  const Pairs pairs = pairs_of(x, expansion);
  const Tensor products =
      x.index_select(-1, pairs.first) * x.index_select(-1, pairs.second) * pairs.scale;
  if (expansion == Expansion::square) return products;
  const Tensor one = hidden.logical_not().to(x.scalar_type());
  return at::cat({one, x * linear_scale(x.size(-1)), products}, -1);
}

/// dLoss/dx from dLoss/dfeatures.
Tensor expansion_gradient(const Tensor& whole, const Tensor& d_features, Expansion expansion) {
  const std::int64_t dim = whole.size(-1);
  const Tensor hidden = hidden_tokens(whole);
  const Tensor x = whole.to(d_features.scalar_type()).masked_fill(hidden, 0);
  const Pairs pairs = pairs_of(x, expansion);
  const std::int64_t count = pairs.first.size(0);
  std::vector<std::int64_t> shape = x.sizes().vec();
  shape.back() = dim * dim;
  const Tensor upper =
      at::zeros(shape, x.options())
          .index_copy_(-1, pairs.first * dim + pairs.second,
                       d_features.narrow(-1, d_features.size(-1) - count, count) * pairs.scale)
          .unflatten(-1, at::IntArrayRef{dim, dim});
  Tensor dx = at::matmul(upper + upper.transpose(-2, -1), x.unsqueeze(-1)).squeeze(-1);
  if (expansion == Expansion::taylor2) {
    dx.add_(d_features.narrow(-1, 1, dim), linear_scale(dim));
  }
  return dx.masked_fill_(hidden, 0);
}

}  // namespace

std::int64_t Features::count(std::int64_t dim) const {
  const std::int64_t pairs = dim * (dim + 1) / 2;
  if (expansion == Expansion::square) return pairs;
  if (expansion == Expansion::taylor2) return 1 + dim + pairs;
  return omega.defined() ? omega.size(-2) : dim;
}

Tensor Features::of(const Tensor& x, std::int64_t begin) const {
  if (expansion != Expansion::none) return expanded(x, expansion);
  Tensor y = x;
  if (omega.defined()) {
    const Tensor scaled = x * scale;
    y = at::matmul(scaled, omega.to(x.scalar_type()).transpose(-2, -1));
    if (half_square) y = y - (scaled * scaled).sum(-1, true) * 0.5;
  }
  if (!hidden.defined()) return y;
  return y.masked_fill(hidden.narrow(2, begin, x.size(2)),
                       -std::numeric_limits<double>::infinity());
}

Tensor Features::gradient(const Tensor& x, const Tensor& d_result) const {
  if (expansion != Expansion::none) return expansion_gradient(x, d_result, expansion);
  if (!omega.defined()) return d_result;
  Tensor to = at::matmul(d_result, omega.to(d_result.scalar_type()));
  if (half_square) to.addcmul_(d_result.sum(-1, true), x.to(d_result.scalar_type()), -scale);
  return to.mul_(scale);
}

c10::IValue Features::packed() const {
  return c10::ivalue::Tuple::create(
      {omega, scale, half_square, hidden, static_cast<std::int64_t>(expansion)});
}

Features Features::unpacked(const c10::IValue& value) {
  const auto& parts = value.toTupleRef().elements();
  return {parts[0].toTensor(), parts[1].toDouble(), parts[2].toBool(), parts[3].toTensor(),
          static_cast<Expansion>(parts[4].toInt())};
}

Tensor Operand::part(const Piece& piece, at::ScalarType type) const {
  const Tensor x = whole.narrow(2, piece.begin, piece.tokens()).to(type);
  return features.of(x, piece.begin).flatten(0, 1);
}

Tensor Operand::rows(std::int64_t begin, std::int64_t count, at::ScalarType type) const {
  const Tensor x = features.of(whole.narrow(2, begin, count).to(type), begin);
  return rows_of(x, 0, count, type);
}

void Operand::put_part_gradient(const Tensor& d_whole, const Piece& piece,
                                const Tensor& d_part) const {
  const Tensor x = whole.narrow(2, piece.begin, piece.tokens());
  const Tensor shaped = d_part.view({x.size(0), x.size(1), piece.tokens(), width()});
  d_whole.narrow(2, piece.begin, piece.tokens()).copy_(features.gradient(x, shaped));
}

void Operand::put_rows_gradient(const Tensor& d_whole, std::int64_t begin,
                                const Tensor& d_rows) const {
  const Tensor x = whole.narrow(2, begin, d_rows.size(0));
  const Tensor shaped =
      d_rows.transpose(0, 1).unflatten(0, at::IntArrayRef{whole.size(0), whole.size(1)});
  d_whole.narrow(2, begin, d_rows.size(0)).copy_(features.gradient(x, shaped));
}

}  // namespace attnbench
