#include "attention/algorithms/recurrence/gated_recurrence.hpp"

#include <algorithm>
#include <vector>

#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/mechanism.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::gated_recurrence {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr double kSharpness = 8;
constexpr std::int64_t kBlock = 32;

/// h_t = a_t h_{t-1} + b_t along dimension 0 of a, b [T, ...], from `past` [...]. Blocks of `block`
/// tokens are computed side by side from 0; the state before each is a recurrence over their ends.
Tensor recur(Tensor a, Tensor b, const Tensor& past, std::int64_t block) {
  const std::int64_t length = a.size(0);
  std::vector<Tensor> sums;
  if (length <= block) {
    Tensor h = past;
    for (std::int64_t t = 0; t < length; ++t) {
      h = at::addcmul(b.select(0, t), a.select(0, t), h);
      sums.push_back(h);
    }
    return at::stack(sums);
  }
  const std::int64_t blocks = (length + block - 1) / block;
  const std::int64_t padding = blocks * block - length;
  const auto cut = [&](const Tensor& x) {
    return at::constant_pad_nd(x, {0, 0, 0, 0, 0, padding})
        .unflatten(0, at::IntArrayRef{blocks, block});
  };
  a = cut(a);
  b = cut(b);
  std::vector<Tensor> decays{a.select(1, 0)};
  sums = {b.select(1, 0)};
  for (std::int64_t t = 1; t < block; ++t) {
    decays.push_back(decays.back() * a.select(1, t));
    sums.push_back(at::addcmul(b.select(1, t), a.select(1, t), sums.back()));
  }
  // There are as many blocks of one token as tokens: their ends need longer blocks.
  const Tensor ends = recur(decays.back(), sums.back(), past, std::max<std::int64_t>(block, 2));
  const Tensor before = at::cat({past.unsqueeze(0), ends.narrow(0, 0, blocks - 1)});
  return at::addcmul(at::stack(sums, 1), at::stack(decays, 1), before.unsqueeze(1))
      .flatten(0, 1)
      .narrow(0, 0, length);
}

/// A parameter [H, D] as [1, B H, D] in `type`, broadcastable to rows of tokens.
Tensor for_rows(const Tensor& parameter, std::int64_t batch, at::ScalarType type) {
  return parameter.to(type).repeat({batch, 1}).unsqueeze(0);
}

/// Tokens of a call, time first: [n, B H, D].
struct Gates {
  Tensor v, r, i;
  Tensor log_a, a;
  Tensor gain;    ///< sqrt(1 - a^2), and 1 at the token that begins the sequence if it is plain
  Tensor hidden;  ///< [n, B H, 1], or undefined
  Tensor first;   ///< likewise: where the gain is 1 and does not follow a
};

/// [n, B] as [n, B H, 1].
Tensor over_heads(const Tensor& tokens, std::int64_t heads) {
  const std::int64_t count = tokens.size(0);
  const std::int64_t batch = tokens.size(1);
  return tokens.unsqueeze(-1).expand({count, batch, heads}).reshape({count, batch * heads, 1});
}

Gates gates_of(const Call& call, std::int64_t begin, std::int64_t count, at::ScalarType type) {
  const std::int64_t batch = call.value.size(0);
  const std::int64_t heads = call.value.size(1);
  Gates g;
  Tensor recurrence = rows_of(call.recurrence, begin, count, type);
  Tensor input = rows_of(call.input, begin, count, type);
  g.v = rows_of(call.value, begin, count, type);
  if (call.key_mask.defined()) {
    // Replaced before any computation: padding may hold NaN.
    g.hidden = over_heads(call.key_mask.narrow(1, begin, count).logical_not().t(), heads);
    recurrence = recurrence.masked_fill(g.hidden, 0);
    input = input.masked_fill(g.hidden, 0);
    g.v = g.v.masked_fill(g.hidden, 0);
  }
  g.r = at::sigmoid(recurrence + for_rows(call.recurrence_bias, batch, type));
  g.i = at::sigmoid(input + for_rows(call.input_bias, batch, type));
  g.log_a = g.r * for_rows(at::softplus(call.lambda.to(type), 1, 40) * -kSharpness, batch, type);
  if (g.hidden.defined()) g.log_a = g.log_a.masked_fill(g.hidden, 0);
  g.a = g.log_a.exp();
  const Tensor rest = -at::expm1(g.log_a * 2);
  // The root's derivative is infinite at 0, where log a has no gradient.
  const Tensor none = rest == 0;
  g.gain = rest.masked_fill(none, 1).sqrt().masked_fill(none, 0);
  if (call.first.defined()) {
    const Tensor places = at::arange(begin, begin + count, call.first.options());
    g.first = over_heads(places.unsqueeze(1).eq(call.first.unsqueeze(0)), heads);
    g.gain = g.gain.masked_fill(g.first, 1);
  }
  return g;
}

/// From rows [n, B H, D] to [B, H, n, D].
Tensor from_rows(const Tensor& rows, const Tensor& like) {
  return rows.unflatten(1, at::IntArrayRef{like.size(0), like.size(1)}).permute({1, 2, 0, 3});
}

/// Tokens per piece, and per block of consecutive tokens within it.
struct Stride {
  std::int64_t piece, block;
};

/// `past` is [B H, D] and advanced in place.
Tensor forward(const Call& call, const Stride& stride, Tensor past) {
  const Tensor y = at::empty(call.value.sizes(), call.value.options());
  for (std::int64_t begin = 0; begin < y.size(2); begin += stride.piece) {
    const std::int64_t count = std::min(stride.piece, y.size(2) - begin);
    const Gates g = gates_of(call, begin, count, past.scalar_type());
    const Tensor h = recur(g.a, g.gain * g.i * g.v, past, stride.block);
    past.copy_(h.select(0, count - 1));
    put_rows(y, begin, h);
  }
  return y;
}

/// Gradients by the reverse recurrence d_t = g_t + a_{t+1} d_{t+1}, where d_t is the gradient of
/// h_t: once forward over the tokens for the state before each piece, then backward.
struct Backward {
  const Call& call;
  Stride stride;
  const Tensor& upstream;
  at::ScalarType type = compute_type(call.value.scalar_type());
  Tensor d_recurrence = at::empty_like(call.recurrence);  ///< this and the next two [B, H, T, D]
  Tensor d_input = at::empty_like(call.input);
  Tensor d_value = at::empty_like(call.value);
  Tensor d_lambda = sums();  ///< per row, as the next two: [B H, D]
  Tensor d_recurrence_bias = sums();
  Tensor d_input_bias = sums();

  Tensor sums() const {
    return at::zeros({call.value.size(0) * call.value.size(1), call.value.size(3)},
                     call.value.options().dtype(type));
  }

  std::vector<Tensor> starts() const {
    Tensor past = sums();
    std::vector<Tensor> all;
    for (std::int64_t begin = 0; begin < upstream.size(2); begin += stride.piece) {
      const std::int64_t count = std::min(stride.piece, upstream.size(2) - begin);
      all.push_back(past);
      if (begin + count == upstream.size(2)) break;
      const Gates g = gates_of(call, begin, count, type);
      past = recur(g.a, g.gain * g.i * g.v, past, stride.block).select(0, count - 1).clone();
    }
    return all;
  }

  /// `coming` is a_{t+1} d_{t+1} at the piece's last token; returns that of the piece on its left.
  Tensor piece(std::int64_t begin, const Tensor& start, const Tensor& coming) {
    const std::int64_t count = std::min(stride.piece, upstream.size(2) - begin);
    const Gates g = gates_of(call, begin, count, type);
    const Tensor input = g.i * g.v;
    const Tensor h = recur(g.a, g.gain * input, start, stride.block);
    const Tensor before = at::cat({start.unsqueeze(0), h.narrow(0, 0, count - 1)});
    const Tensor next = at::cat({g.a.narrow(0, 1, count - 1), at::ones_like(g.a.narrow(0, 0, 1))});
    const Tensor d =
        recur(next.flip(0), rows_of(upstream, begin, count, type).flip(0), coming, stride.block)
            .flip(0);
    // d gain / d log a = -a^2 / gain, and 0 where log a is 0 or the gain does not depend on it.
    Tensor none = g.gain == 0;
    if (g.first.defined()) none = none.logical_or(g.first);
    const Tensor steep = (g.a * g.a / g.gain.masked_fill(none, 1)).masked_fill(none, 0);
    const Tensor d_log_a = d * (g.a * before - steep * input);
    const Tensor to_recurrence = d_log_a * g.log_a * (1 - g.r);
    const Tensor to_input = d * g.gain * g.v * g.i * (1 - g.i);
    Tensor to_lambda = d_log_a * g.r;
    if (g.hidden.defined()) to_lambda = to_lambda.masked_fill(g.hidden, 0);
    d_lambda += to_lambda.sum(0);
    d_recurrence_bias += to_recurrence.sum(0);
    d_input_bias += to_input.sum(0);
    put_rows(d_recurrence, begin, to_recurrence);
    put_rows(d_input, begin, to_input);
    put_rows(d_value, begin, d * g.gain * g.i);
    return g.a.select(0, 0) * d.select(0, 0);
  }

  /// A sum over tokens [B H, D] as the gradient of a parameter.
  Tensor parameter(const Tensor& sum, const Tensor& like) const {
    return sum.view({-1, like.size(0), like.size(1)}).sum(0).to(like.scalar_type());
  }

  variable_list run() {
    const auto before = starts();
    Tensor coming = sums();
    for (auto i = static_cast<std::int64_t>(before.size()) - 1; i >= 0; --i) {
      coming = piece(i * stride.piece, before[static_cast<std::size_t>(i)], coming);
    }
    const Tensor lambda = call.lambda.to(type);
    const Tensor along_lambda = parameter(d_lambda, lambda) * at::sigmoid(lambda) * -kSharpness;
    return {d_recurrence,
            d_input,
            d_value,
            along_lambda.to(call.lambda.scalar_type()),
            parameter(d_recurrence_bias, call.recurrence_bias),
            parameter(d_input_bias, call.input_bias),
            Tensor(),
            Tensor()};
  }
};

struct Recurrence : torch::autograd::Function<Recurrence> {
  static Tensor forward(AutogradContext* context, const Tensor& recurrence, const Tensor& input,
                        const Tensor& value, const Tensor& lambda, const Tensor& recurrence_bias,
                        const Tensor& input_bias, const Call& call, const Stride& stride) {
    context->save_for_backward({recurrence, input, value, lambda, recurrence_bias, input_bias});
    // An IValue holds an undefined tensor; save_for_backward of LibTorch 1.13 does not.
    context->saved_data["key_mask"] = call.key_mask;
    context->saved_data["first"] = call.first;
    context->saved_data["stride"] = std::vector<std::int64_t>{stride.piece, stride.block};
    const Tensor past =
        empty_state(1, value.size(0) * value.size(1), value.size(3), value.options()).squeeze(0);
    return gated_recurrence::forward(call, stride, past);
  }

  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const Call call{saved[0],
                    saved[1],
                    saved[2],
                    saved[3],
                    saved[4],
                    saved[5],
                    data["key_mask"].toTensor(),
                    data["first"].toTensor()};
    const auto stride = data["stride"].toIntVector();
    return Backward{call, {stride[0], stride[1]}, upstream[0]}.run();
  }
};

Tensor run(const Call& call, const Stride& stride, const Tensor& state) {
  if (!state.defined()) {
    return Recurrence::apply(call.recurrence, call.input, call.value, call.lambda,
                             call.recurrence_bias, call.input_bias, call, stride);
  }
  const at::NoGradGuard no_grad;
  return forward(call, stride, state.view({-1, state.size(2)}));
}

}  // namespace

Tensor empty_state(std::int64_t batch, std::int64_t heads, std::int64_t width,
                   const at::TensorOptions& like) {
  return at::zeros({batch, heads, width}, compute_type(like));
}

Tensor materialised(const Call& call, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const auto& v = call.value;
  const auto type = compute_type(v.scalar_type());
  const Gates g = gates_of(call, 0, v.size(2), type);
  const Tensor past =
      state.defined() ? state : empty_state(v.size(0), v.size(1), v.size(3), v.options());
  const Tensor h = recur(g.a, g.gain * g.i * g.v, past.flatten(0, 1), kBlock);
  if (state.defined()) state.copy_(h.select(0, v.size(2) - 1).view(state.sizes()));
  return from_rows(h, v).to(v.scalar_type());
}

Tensor scan(const Call& call, Tensor state) {
  return run(call, {kScanTogether, kScanTogether}, state);
}

Tensor chunked(const Call& call, std::int64_t chunk, Tensor state) {
  return run(call, {chunk * kChunksTogether, chunk}, state);
}

Tensor first_tokens(const Tensor& like, const Tensor& key_mask, Tensor started) {
  const at::NoGradGuard no_grad;
  const auto place = at::TensorOptions(at::kLong).device(like.device());
  Tensor first = at::zeros({like.size(0)}, place);
  Tensor any;
  if (key_mask.defined()) {
    any = key_mask.any(1);
    first = key_mask.to(at::kByte).argmax(1).masked_fill(any.logical_not(), -1);
  }
  if (!started.defined()) return first;
  first = first.masked_fill(started, -1);
  if (any.defined()) {
    started.logical_or_(any);
  } else {
    started.fill_(true);
  }
  return first;
}

Tensor draw_lambda(std::uint64_t seed, const std::string& name, std::int64_t heads,
                   std::int64_t width, const Problem& problem, DecayInit init) {
  Problem exact = problem;
  exact.dtype = Dtype::float64;  // 0.999 is 1 in bfloat16
  constexpr double low = 0.9, high = 0.999;
  // log a at r = 1 is kSharpness times that of its eighth root, which is -softplus(lambda).
  Tensor log_root;
  if (init == DecayInit::paper) {
    log_root = draw_uniform(seed, name, {heads, width}, low, high, exact).log() / kSharpness;
  } else {
    log_root = draw_uniform(seed, name, {heads, width}, low * low, high * high, exact).log() / 2;
  }
  return at::log(at::expm1(-log_root)).to(scalar_type(problem.dtype));
}

}  // namespace attnbench::gated_recurrence
