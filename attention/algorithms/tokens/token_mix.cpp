#include "attention/algorithms/tokens/token_mix.hpp"

#include <algorithm>
#include <cmath>

#include "attention/algorithms/recurrence/gated_recurrence.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench {
namespace {

at::TensorOptions placed(const Problem& problem) {
  return at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
}

class ShortConvolution : public TokenMix {
 public:
  ShortConvolution(const Problem& problem, std::int64_t taps)
      : TokenMix("short_convolution"),
        problem_(problem),
        weight_(register_parameter("weight", at::zeros({taps, problem.width()}, placed(problem)),
                                   problem.gradient)) {}

  at::Tensor forward(const at::Tensor& x, State* state) override {
    const at::AutoGradMode record(state == nullptr && at::GradMode::is_enabled());
    const std::int64_t past = weight_.size(0) - 1;
    const at::Tensor all = state != nullptr ? at::cat({(*state)["tail"], x}, 1)
                                            : at::constant_pad_nd(x, {0, 0, past, 0});
    const auto type = compute_type(x.scalar_type());
    const at::Tensor weight = weight_.to(type);
    at::Tensor y;
    for (std::int64_t i = 0; i <= past; ++i) {
      const at::Tensor tap = all.narrow(1, past - i, x.size(1)).to(type) * weight[i];
      y = y.defined() ? y + tap : tap;
    }
    if (state != nullptr) (*state)["tail"].copy_(all.narrow(1, x.size(1), past));
    return y.to(x.scalar_type());
  }

  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const double deviation = 1 / std::sqrt(static_cast<double>(weight_.size(0)));
    weight_.copy_(draw_normal(seed, "convolution", weight_.sizes().vec(), deviation, problem_));
  }

  void add_state(State& state, std::int64_t batch, const at::TensorOptions& tensor) const override {
    state.tensors["tail"] = at::zeros({batch, weight_.size(0) - 1, weight_.size(1)}, tensor);
  }

 private:
  const Problem problem_;
  at::Tensor weight_;
};

class RecurrentMix : public TokenMix {
 public:
  RecurrentMix(const Problem& problem, std::int64_t chunk)
      : TokenMix("recurrent_mix"), problem_(problem), chunk_(chunk) {
    const std::int64_t heads = problem.heads;
    const std::int64_t width = problem.head_dim;
    const auto parameter = [&](const char* word, std::vector<std::int64_t> shape) {
      return register_parameter(word, at::zeros(shape, placed(problem)), problem.gradient);
    };
    recurrence_weight_ = parameter("recurrence_weight", {heads, width, width});
    input_weight_ = parameter("input_weight", {heads, width, width});
    lambda_ = parameter("lambda", {heads, width});
    recurrence_bias_ = parameter("recurrence_bias", {heads, width});
    input_bias_ = parameter("input_bias", {heads, width});
  }

  at::Tensor forward(const at::Tensor& x, State* state) override {
    const at::AutoGradMode record(state == nullptr && at::GradMode::is_enabled());
    const at::Tensor heads = x.unflatten(2, {problem_.heads, problem_.head_dim}).transpose(1, 2);
    const gated_recurrence::Call call{at::matmul(heads, recurrence_weight_),
                                      at::matmul(heads, input_weight_),
                                      heads,
                                      lambda_,
                                      recurrence_bias_,
                                      input_bias_,
                                      {}};
    const at::Tensor hidden = state != nullptr ? (*state)["hidden"] : at::Tensor();
    return gated_recurrence::chunked(call, chunk_, hidden).transpose(1, 2).flatten(2);
  }

  void draw_parameters(std::uint64_t seed) override {
    const at::NoGradGuard no_grad;
    const double deviation = 1 / std::sqrt(static_cast<double>(problem_.head_dim));
    for (const auto& [name, weight] : {std::pair("recurrence_weight", recurrence_weight_),
                                       std::pair("input_weight", input_weight_)}) {
      at::Tensor(weight).copy_(draw_normal(seed, name, weight.sizes().vec(), deviation, problem_));
    }
    lambda_.copy_(
        gated_recurrence::draw_lambda(seed, "lambda", problem_.heads, problem_.head_dim, problem_));
    recurrence_bias_.zero_();
    input_bias_.zero_();
  }

  void add_state(State& state, std::int64_t batch, const at::TensorOptions& tensor) const override {
    state.tensors["hidden"] =
        gated_recurrence::empty_state(batch, problem_.heads, problem_.head_dim, tensor);
  }

 private:
  const Problem problem_;
  const std::int64_t chunk_;
  at::Tensor recurrence_weight_, input_weight_, lambda_, recurrence_bias_, input_bias_;
};

std::shared_ptr<TokenMix> mix_of(const Options& options, const Problem& problem,
                                 std::int64_t chunk) {
  return options.text("before") == "conv" ? short_convolution(problem, options.integer("taps"))
                                          : recurrent_mix(problem, chunk);
}

/// Added to the mean square of a norm, as the default of PyTorch's layers is.
constexpr double kNormEpsilon = 1e-5;

/// [B, T, 1]: for each place the token that stands there when every sequence of `real` [B] tokens
/// is reversed and its padding is left where it is.
at::Tensor reversed_places(const at::Tensor& real, std::int64_t tokens) {
  const at::Tensor place = at::arange(tokens, real.options()).unsqueeze(0);
  const at::Tensor last = real.unsqueeze(1) - 1;
  return at::where(place.le(last), last - place, place).unsqueeze(2);
}

}  // namespace

BothDirections::BothDirections(std::shared_ptr<TokenMix> forward,
                               std::shared_ptr<TokenMix> backward)
    : torch::nn::Module("both_directions"),
      forward_(register_module("forward", std::move(forward))),
      backward_(register_module("backward", std::move(backward))) {}

at::Tensor BothDirections::forward(const at::Tensor& x, const at::Tensor& key_mask) {
  const auto numbers = at::TensorOptions(at::kLong).device(x.device());
  const at::Tensor real =
      key_mask.defined() ? key_mask.sum(1) : at::full({x.size(0)}, x.size(1), numbers);
  const at::Tensor places = reversed_places(real, x.size(1)).expand_as(x);
  const at::Tensor later = backward_->forward(x.gather(1, places), nullptr).gather(1, places);
  return forward_->forward(x, nullptr) + later;
}

void BothDirections::draw_parameters(std::uint64_t seed) {
  constexpr std::uint64_t other = 0x6261636b77617264;  // "backward"
  forward_->draw_parameters(seed);
  backward_->draw_parameters(seed ^ other);
}

MixesTokens::MixesTokens(const std::string& name, const Options& chosen, const Problem& asked,
                         std::int64_t chunk)
    : Mechanism(name, chosen, asked) {
  if (options.text("before") == "none") return;
  const auto mix = [&] { return mix_of(options, problem, chunk); };
  if (options.text("directions") != "both") {
    ahead_ = register_module("before", mix());
    return;
  }
  both_ = register_module("before", std::make_shared<BothDirections>(mix(), mix()));
}

at::Tensor MixesTokens::before(const at::Tensor& x, State* state) {
  if (both_) return before_masked(x, {});
  return ahead_ ? finished(ahead_->forward(x, state)) : Mechanism::before(x, state);
}

at::Tensor MixesTokens::before_masked(const at::Tensor& x, const at::Tensor& key_mask) {
  return finished(both_->forward(x, key_mask));
}

at::Tensor MixesTokens::finished(const at::Tensor& y) const {
  if (!options.boolean("before_norm")) return y;
  const at::Tensor wide = y.to(compute_type(y.scalar_type()));
  return (wide * at::rsqrt((wide * wide).mean(-1, true) + kNormEpsilon)).to(y.scalar_type());
}

void MixesTokens::draw_parameters(std::uint64_t seed) {
  if (ahead_) ahead_->draw_parameters(seed);
  if (both_) both_->draw_parameters(seed);
}

std::vector<Role> MixesTokens::feeding(std::vector<Role> roles,
                                       const std::vector<std::string>& names) const {
  for (Role& role : roles) {
    if (std::find(names.begin(), names.end(), role.name) != names.end()) role.feed = fed();
  }
  return roles;
}

void MixesTokens::add_mix_state(State& state, std::int64_t batch,
                                const at::TensorOptions& tensor) const {
  if (ahead_) ahead_->add_state(state, batch, tensor);
}

std::vector<Option> token_mix_options(const std::string& fed) {
  return {
      Option::text("before", {"none", "conv", "rg_lru"},
                   "applied to the tokens before " + fed + " are projected from them"),
      Option::text("directions", {"forward", "both"},
                   "of `before`: forward looks back only; both adds another one that runs from "
                   "a sequence's last real token to its first (the paper does not say how; "
                   "ours)"),
      Option::integer("taps", 3, "tokens that conv sees, the token itself included", 1),
      Option::boolean("before_norm", false,
                      "divides what `before` gives for a token by its root mean square over the "
                      "width of the model (without weights: the projections can hold them)")};
}

Support token_mix_support(const std::string& mechanism, const Options& options,
                          const Problem& problem) {
  const bool before = options.text("before") != "none";
  if (problem.pattern == Pattern::causal && options.text("directions") == "both") {
    return Support::no(mechanism +
                       ": directions=both looks ahead: choose directions=forward, or the "
                       "bidirectional pattern");
  }
  if (problem.pattern == Pattern::cross && before) {
    return Support::no(mechanism +
                       ": before mixes the tokens of one sequence, and cross has two: choose "
                       "before=none");
  }
  if (options.boolean("before_norm") && !before) {
    return Support::no(mechanism +
                       ": before_norm has nothing to normalise: choose before=conv or rg_lru");
  }
  return {};
}

std::shared_ptr<TokenMix> short_convolution(const Problem& problem, std::int64_t taps) {
  return std::make_shared<ShortConvolution>(problem, taps);
}

std::shared_ptr<TokenMix> recurrent_mix(const Problem& problem, std::int64_t chunk) {
  return std::make_shared<RecurrentMix>(problem, chunk);
}

}  // namespace attnbench
