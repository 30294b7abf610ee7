#include "attention/algorithms/tokens/operand.hpp"

#include <limits>

namespace attnbench {

using at::Tensor;

Tensor Features::of(const Tensor& x, std::int64_t begin) const {
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
  if (!omega.defined()) return d_result;
  Tensor to = at::matmul(d_result, omega.to(d_result.scalar_type()));
  if (half_square) to.addcmul_(d_result.sum(-1, true), x.to(d_result.scalar_type()), -scale);
  return to.mul_(scale);
}

c10::IValue Features::packed() const {
  return c10::ivalue::Tuple::create({omega, scale, half_square, hidden});
}

Features Features::unpacked(const c10::IValue& value) {
  const auto& parts = value.toTupleRef().elements();
  return {parts[0].toTensor(), parts[1].toDouble(), parts[2].toBool(), parts[3].toTensor()};
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
