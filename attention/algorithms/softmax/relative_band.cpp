#include "attention/algorithms/softmax/relative_band.hpp"

#include <algorithm>
#include <limits>

#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench {
namespace {

using at::Tensor;

// Blocks of fewer queries do not pay off for any band.
constexpr std::int64_t kLeastRows = 16;

/// softmax(q k^T + bias) v over the keys that are not hidden; q [..., rows, D], k and v
/// [..., columns, D].
Tensor attend(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& bias,
              const Tensor& hidden) {
  Tensor scores = at::matmul(q, k.transpose(-2, -1));
  if (bias.defined()) scores = scores + bias;
  if (hidden.defined()) {
    // Finite, so that rows without a visible key do not become NaN, in their gradients either.
    const double lowest = scores.scalar_type() == at::kDouble
                              ? std::numeric_limits<double>::lowest()
                              : double{std::numeric_limits<float>::lowest()};
    scores = scores.masked_fill(hidden, lowest);
  }
  return at::matmul(at::softmax(scores, -1), v);
}

/// Cut or padded, so that the keys of a block are `columns` tokens from a multiple of `rows` on.
struct Layout {
  std::int64_t blocks, rows, columns, front, back;
  /// x [..., S, w] as [..., blocks, columns, w].
  Tensor of_keys(const Tensor& x) const {
    return at::constant_pad_nd(x, {0, 0, front, back}).unfold(2, columns, rows).transpose(-2, -1);
  }
  Tensor of_mask(const Tensor& mask) const {
    return at::constant_pad_nd(mask, {front, back}).unfold(1, columns, rows);
  }
};

}  // namespace

BandBlock band_block(std::int64_t length, std::int64_t left, std::int64_t right) {
  left = std::min(left, length);
  right = std::min(right, length);
  const std::int64_t rows = std::min(length, std::max(left + right + 1, kLeastRows));
  return {rows, left + rows + right};
}

Tensor relative_band(const SoftmaxCall& call, const RelativeBias& bias) {
  const auto type = compute_type(call.q.scalar_type());
  const std::int64_t length = call.length();
  const std::int64_t keys = call.key_length();
  const std::int64_t left = std::min(call.left, length - 1 + call.offset);
  const std::int64_t right =
      std::max<std::int64_t>(0, std::min(call.right, keys - 1 - call.offset));
  const std::int64_t rows = band_block(length, left, right).rows;
  const std::int64_t blocks = (length + rows - 1) / rows;
  const std::int64_t columns = left + rows + right;
  const std::int64_t front = left - call.offset;
  const Layout layout{blocks, rows, columns, front, (blocks - 1) * rows + columns - front - keys};

  const auto integers = call.q.options().dtype(at::kLong).requires_grad(false);
  const Tensor distance =
      at::arange(columns, integers).unsqueeze(0) - at::arange(rows, integers).unsqueeze(1) - left;
  const Tensor outside = (distance < -call.left).logical_or_(distance > call.right);
  const Tensor there =
      call.key_mask.defined() ? call.key_mask : at::ones({1, keys}, integers.dtype(at::kBool));
  const Tensor absent = layout.of_mask(there).logical_not();  // [B or 1, blocks, columns]
  const Tensor hidden = absent.unsqueeze(1).unsqueeze(-2).logical_or(outside);

  Tensor added;
  if (bias.bias.defined()) {
    const Tensor places = (distance + bias.reach).clamp(0, 2 * bias.reach);
    added = bias.bias.to(type).index_select(0, places.flatten()).view({rows, columns});
  }
  const Tensor q =
      at::constant_pad_nd(call.q.to(type) * call.scale, {0, 0, 0, blocks * rows - length})
          .unflatten(2, at::IntArrayRef{blocks, rows});
  const Tensor k = layout.of_keys(without_padding(call.k, call.key_mask).to(type));
  const Tensor v = layout.of_keys(without_padding(call.v, call.key_mask).to(type));
  Tensor output = attend(q, k, v, added, hidden);
  if (call.key_mask.defined()) output = output.masked_fill(hidden.all(-1, true), 0);
  return output.flatten(2, 3).narrow(2, 0, length);
}

Tensor relative_token(const SoftmaxCall& call, const RelativeBias& bias, const Tensor& distance) {
  const auto type = compute_type(call.q.scalar_type());
  Tensor added;
  if (bias.bias.defined()) {
    added = bias.bias.to(type).index_select(0, distance + bias.reach);
  }
  Tensor hidden;
  if (call.key_mask.defined()) hidden = call.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
  const Tensor output =
      attend(call.q.to(type) * call.scale, without_padding(call.k, call.key_mask).to(type),
             without_padding(call.v, call.key_mask).to(type), added, hidden);
  return hidden.defined() ? output.masked_fill(hidden.all(-1, true), 0) : output;
}

}  // namespace attnbench
