#include "attention/algorithms/softmax/forms.hpp"

#include <limits>

namespace attnbench {
namespace {

/// Keys and values of G heads as H = heads of them.
at::Tensor expanded(const at::Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  return x.unsqueeze(2)
      .expand({x.size(0), x.size(1), heads / x.size(1), x.size(2), x.size(3)})
      .reshape({x.size(0), heads, x.size(2), x.size(3)});
}

/// True where a query must not see a key, broadcastable to [B, H, T, S]; undefined = sees all.
at::Tensor hidden(const SoftmaxCall& call) {
  at::Tensor mask;
  if (!call.sees_all()) {
    const auto integers = call.q.options().dtype(at::kLong);
    const auto distance = at::arange(call.key_length(), integers).unsqueeze(0) -
                          at::arange(call.length(), integers).unsqueeze(1) - call.offset;
    mask = (distance < -call.left).logical_or_(distance > call.right);
  }
  if (!call.key_mask.defined()) return mask;
  const auto padded = call.key_mask.logical_not().unsqueeze(1).unsqueeze(1);
  return mask.defined() ? mask.logical_or(padded) : padded;
}

}  // namespace

bool SoftmaxCall::sees_all() const {
  return length() - 1 + offset - left <= 0 && offset + right >= key_length() - 1;
}

bool SoftmaxCall::may_see_none() const {
  if (key_mask.defined() || key_length() == 0) return true;
  return offset + right < 0 || length() - 1 + offset - left > key_length() - 1;
}

SoftmaxCall SoftmaxCall::without_padding() const {
  SoftmaxCall clean = *this;
  if (!key_mask.defined()) return clean;
  const auto padded = key_mask.logical_not().unsqueeze(1).unsqueeze(-1);
  clean.k = k.masked_fill(padded, 0);
  clean.v = v.masked_fill(padded, 0);
  return clean;
}

at::Tensor softmax_composite(const SoftmaxCall& given) {
  const SoftmaxCall call = given.without_padding();
  const auto heads = call.q.size(1);
  auto scores = at::matmul(call.q * call.scale, expanded(call.k, heads).transpose(-2, -1));
  const auto mask = hidden(call);
  at::Tensor blind;
  if (mask.defined()) {
    scores.masked_fill_(mask, -std::numeric_limits<double>::infinity());
    if (call.may_see_none()) {
      // Softmax of nothing is 0/0, in its gradient too: such rows get finite scores and lose their
      // output afterwards.
      blind = mask.all(-1, true);
      scores.masked_fill_(blind, 0.0);
    }
  }
  auto output = [&] {
    const auto weights = at::softmax(scores, -1);
    scores.reset();
    return at::matmul(weights, expanded(call.v, heads));
  }();
  return blind.defined() ? output.masked_fill(blind, 0.0) : output;
}

}  // namespace attnbench
