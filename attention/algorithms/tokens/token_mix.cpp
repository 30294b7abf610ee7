#include "attention/algorithms/tokens/token_mix.hpp"

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

}  // namespace

std::shared_ptr<TokenMix> short_convolution(const Problem& problem, std::int64_t taps) {
  return std::make_shared<ShortConvolution>(problem, taps);
}

std::shared_ptr<TokenMix> recurrent_mix(const Problem& problem, std::int64_t chunk) {
  return std::make_shared<RecurrentMix>(problem, chunk);
}

}  // namespace attnbench
