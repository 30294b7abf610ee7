#include "attention/algorithms/selective_scan/selective_scan.hpp"

#include <vector>

#include "attention/algorithms/recurrence/by_pieces.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::selective_scan {
namespace {

using at::Tensor;

// Tokens come first and the channels of a group side by side, W = H / G D of them, so that a step
// of the recurrence is one operation on dense numbers: states of tokens are [n, B, G, N, W].

/// x [B, H, n, D] as [n, B, G, W], dense.
Tensor channels_of(const Tensor& x, std::int64_t groups) {
  return x.unflatten(1, at::IntArrayRef{groups, x.size(1) / groups})
      .permute({3, 0, 1, 2, 4})
      .flatten(3)
      .contiguous();
}

/// Back again: [n, B, G, W] as [B, H, n, D].
Tensor heads_of(const Tensor& channels, std::int64_t heads) {
  const std::int64_t in_group = heads / channels.size(2);
  return channels.unflatten(3, at::IntArrayRef{in_group, channels.size(3) / in_group})
      .permute({1, 2, 3, 0, 4})
      .flatten(1, 2);
}

/// A parameter [H, r, D] as [G, r, W], or [H, D] as [G, W], in `type`.
Tensor of_groups(const Tensor& parameter, std::int64_t groups, at::ScalarType type) {
  const Tensor heads =
      parameter.to(type).unflatten(0, at::IntArrayRef{groups, parameter.size(0) / groups});
  return parameter.dim() == 2 ? heads.flatten(1) : heads.transpose(1, 2).flatten(2);
}

/// x [B, G, n, w] as [n, B, G, w], dense.
Tensor tokens_first(const Tensor& x) { return x.permute({2, 0, 1, 3}).contiguous(); }

/// What all pieces share. Undefined tensors as in Call.
struct Weights {
  Tensor rate;         ///< -e^a [G, N, W]
  Tensor bias, skip;   ///< [G, W]
  Tensor step_weight;  ///< [G, R, W]
  Tensor gain;         ///< B C of constants, [G, N, W]
  /// Of complex numbers, what rate and gain have of i: apart, since gradients pass from piece to
  /// piece in real tensors alone.
  Tensor turn, gain_turn;

  Weights(const Call& call, at::ScalarType type) {
    const auto grouped = [&](const Tensor& parameter) {
      return parameter.defined() ? of_groups(parameter, call.groups(), type) : Tensor();
    };
    rate = -grouped(call.a_log).exp();
    bias = grouped(call.bias);
    skip = grouped(call.skip);
    step_weight = grouped(call.step_weight);
    if (call.input.defined()) return;
    gain = grouped(call.input_weight) * grouped(call.read_weight);
    if (!call.turn.defined()) return;
    turn = grouped(call.turn);
    gain_turn = grouped(call.input_weight) * grouped(call.read_turn);
  }
  explicit Weights(const Tensors& all)
      : rate(all[0]),
        bias(all[1]),
        skip(all[2]),
        step_weight(all[3]),
        gain(all[4]),
        turn(all[5]),
        gain_turn(all[6]) {}
  Tensors all() const { return {rate, bias, skip, step_weight, gain, turn, gain_turn}; }

  bool complex() const { return turn.defined(); }
  Tensor exponents() const { return complex() ? at::complex(rate, turn) : rate; }
  Tensor gains() const { return complex() ? at::complex(gain, gain_turn) : gain; }
};

/// Tokens of a piece in the dtype of computation; padding has no step, input and read.
struct Tokens {
  Tensor x;       ///< [n, B, G, W]
  Tensor delta;   ///< [n, B, G, W], or [G, W] for all tokens
  Tensor input;   ///< [n, B, G, N], or undefined
  Tensor read;    ///< likewise
  Tensor hidden;  ///< [n, B, 1, 1], true at padding; or undefined

  /// `all` are value, step, input, read and the padding [B, 1, n, 1] of the piece.
  Tokens(const Tensors& all, const Weights& weights) {
    const std::int64_t groups = weights.rate.size(0);
    const Tensor& padding = all[4];
    // Replaced, not multiplied by 0: padding may hold NaN.
    const auto shown = [&](const Tensor& tokens) {
      const Tensor wide = tokens.to(weights.rate.scalar_type());
      return padding.defined() ? wide.masked_fill(padding, 0) : wide;
    };
    x = channels_of(shown(all[0]), groups);
    delta = weights.bias;
    if (all[1].defined()) {
      const Tensor step = shown(all[1]);
      delta = delta + (weights.step_weight.defined()
                           ? tokens_first(at::matmul(step, weights.step_weight))
                           : channels_of(step, groups));
    }
    delta = at::softplus(delta, 1, 40);  // beyond which it is its argument
    if (padding.defined()) {
      hidden = tokens_first(padding);
      delta = delta.masked_fill(hidden, 0);
    }
    if (all[2].defined()) input = tokens_first(shown(all[2]));
    if (all[3].defined()) read = tokens_first(shown(all[3]));
  }

  /// exp(-e^a delta) [n, B, G, N, W]: of constant steps a view of one token's.
  Tensor decays(const Weights& weights) const {
    const Tensor one = (delta.unsqueeze(-2) * weights.exponents()).exp_();
    return one.expand({x.size(0), x.size(1), -1, -1, -1});
  }
  /// What each token adds to its state, [n, B, G, N, W].
  Tensor written(const Weights& weights) const {
    const Tensor amount = (delta * x).unsqueeze(-2);
    return amount * (input.defined() ? input.unsqueeze(-1) : weights.gains());
  }
  /// y [n, B, G, W] of what is read of the states; conjugates have as much of it again.
  Tensor outputs(const Tensor& sums, const Weights& weights) const {
    const Tensor real = weights.complex() ? at::real(sums) * 2 : sums;
    const Tensor y = at::addcmul(real, weights.skip, x);
    return hidden.defined() ? y.masked_fill(hidden, 0) : y;
  }
};

/// What tokens read, and the state after the last of them.
struct Scanned {
  Tensor sums;   ///< sum_n C_t,n h_t,n [n, B, G, W]
  Tensor state;  ///< [B, G, N, W]
};

/// Of h_t = a_t h_{t-1} + b_t for a, b [n, B, G, N, W], from `past`, and reads C [n, B, G, N], of
/// which undefined ones are 1. May overwrite b.
using Scan = Scanned (*)(const Tensor& a, const Tensor& b, const Tensor& past, const Tensor& read);

Scanned by_token(const Tensor& a, const Tensor& b, const Tensor& past, const Tensor& read) {
  // Not by select, whose gradient is as large as all tokens, for each of them.
  const auto decays = a.unbind(0), written = b.unbind(0);
  std::vector<Tensor> all;
  for (std::size_t t = 0; t < decays.size(); ++t) {
    all.push_back(at::addcmul(written[t], decays[t], t == 0 ? past : all.back()));
  }
  const Tensor states = at::stack(all);
  return {read.defined() ? at::matmul(read.unsqueeze(-2), states).squeeze(-2) : states.sum(-2),
          all.back()};
}

/// The same as one autograd node, in the memory of b. Its gradient is the recurrence from the last
/// token to the first, d_t = C_t dy_t + conj(a_{t+1}) d_{t+1}. Without reads they are empty: an
/// undefined tensor has no device, for which LibTorch 1.13 asks.
struct ScanNode : torch::autograd::Function<ScanNode> {
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static Variables forward(Context* context, const Tensor& a, const Tensor& b, const Tensor& past,
                           const Tensor& read) {
    const at::AutoDispatchBelowADInplaceOrView below;
    const auto decays = a.unbind(0);
    auto states = b.unbind(0);
    states[0].addcmul_(decays[0], past);
    for (std::size_t t = 1; t < states.size(); ++t) states[t].addcmul_(decays[t], states[t - 1]);
    context->save_for_backward({a, b, past, read});
    return {given(read) ? sum_of(b, read) : b.sum(-2), states.back().clone()};
  }

  static Variables backward(Context* context, const Variables& upstream) {
    const auto saved = context->get_saved_variables();
    const at::AutoDispatchBelowADInplaceOrView below;
    const Tensor a = saved[0].conj(), states = saved[1].conj(), past = saved[2].conj();
    const Tensor& read = saved[3];
    const Tensor d_y = upstream[0].unsqueeze(-2);
    const Tensor d_b = given(read) ? d_y * read.unsqueeze(-1)
                                   : d_y.expand_as(states).clone(at::MemoryFormat::Contiguous);
    const auto decays = a.unbind(0);
    auto d = d_b.unbind(0);
    d.back().add_(upstream[1]);
    for (std::size_t t = d.size() - 1; t-- > 0;) d[t].addcmul_(decays[t + 1], d[t + 1]);
    const Tensor d_a = at::empty_like(d_b);
    const std::int64_t later = states.size(0) - 1;
    d_a.select(0, 0).copy_(d[0] * past);
    Tensor after = d_a.narrow(0, 1, later);
    at::mul_out(after, d_b.narrow(0, 1, later), states.narrow(0, 0, later));
    return {d_a, d_b, decays[0] * d[0], given(read) ? (states * d_y).sum(-1) : Tensor()};
  }

 private:
  static bool given(const Tensor& read) { return read.dim() > 1; }
  /// In N operations for all tokens: products of a row and a matrix would be one for each token.
  static Tensor sum_of(const Tensor& states, const Tensor& read) {
    const auto rows = states.unbind(-2);
    const auto weights = read.unsqueeze(-1).unbind(-2);
    Tensor sum = rows[0] * weights[0];
    for (std::size_t n = 1; n < rows.size(); ++n) sum.addcmul_(rows[n], weights[n]);
    return sum;
  }
};

Scanned in_one_node(const Tensor& a, const Tensor& b, const Tensor& past, const Tensor& read) {
  const Tensor none = at::empty({0}, past.options().requires_grad(false));
  const auto both = ScanNode::apply(a, b, past, read.defined() ? read : none);
  return {both[0], both[1]};
}

Stepped mixed(const Tensors& all, const Weights& weights, const Tensor& past, Scan scan) {
  const Tokens tokens(all, weights);
  const bool complex = weights.complex();
  const Scanned scanned = scan(tokens.decays(weights), tokens.written(weights),
                               complex ? at::view_as_complex(past) : past, tokens.read);
  const Tensor y = tokens.outputs(scanned.sums, weights);
  return {heads_of(y, all[0].size(1)).to(all[0].scalar_type()),
          {complex ? at::view_as_real(scanned.state) : scanned.state}};
}

Tensors tokens_of(const Call& call) {
  return {call.value, call.step, call.input, call.read, padded_tokens(call.key_mask)};
}

/// The state, or the empty one.
Tensor first_state(const Call& call, const Tensor& state) {
  if (state.defined()) return state;
  return empty_state(call.value.size(0), call.groups(), call.a_log, call.turn.defined(),
                     call.value.options().requires_grad(false));
}

}  // namespace

Tensor empty_state(std::int64_t batch, std::int64_t groups, const Tensor& a_log, bool complex,
                   const at::TensorOptions& like) {
  std::vector<std::int64_t> sizes{batch, groups, a_log.size(1),
                                  a_log.size(0) / groups * a_log.size(2)};
  if (complex) sizes.push_back(2);
  return at::zeros(sizes, compute_type(like));
}

Tensor materialised(const Call& call, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const Weights weights(call, compute_type(call.value.scalar_type()));
  const Stepped all = mixed(tokens_of(call), weights, first_state(call, state), by_token);
  if (state.defined()) state.copy_(all.carry[0]);
  return all.output;
}

Tensor chunked(const Call& call, std::int64_t chunk, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const Weights weights(call, compute_type(call.value.scalar_type()));
  Tensors carry{first_state(call, state)};
  const Step step = [](const Tensors& tokens, const Tensors& shared, const Tensors& past) {
    return mixed(tokens, Weights(shared), past[0], in_one_node);
  };
  const Tensor y = by_pieces(step, tokens_of(call), weights.all(), carry, chunk);
  if (state.defined()) state.copy_(carry[0]);
  return y;
}

}  // namespace attnbench::selective_scan
