#include "tasks/training/parts.hpp"

#include <cmath>

#include "attention/torch/draw.hpp"

namespace attnbench::tasks::training {
namespace {

constexpr double norm_epsilon = 1e-5;

at::Tensor constant(const std::vector<std::int64_t>& shape, double value, const Problem& problem) {
  return at::full(shape, value,
                  at::TensorOptions(scalar_type(problem.dtype)).device(problem.device));
}

/// [rows, columns] of variance 1/rows: an input of unit variance keeps it.
at::Tensor matrix(std::uint64_t seed, const std::string& name, std::int64_t rows,
                  std::int64_t columns, const Problem& problem) {
  return draw_normal(seed, name, {rows, columns}, 1 / std::sqrt(static_cast<double>(rows)),
                     problem);
}

/// Casts the bias to the product's dtype, which may be narrower than the weights': otherwise all
/// later tensors would be wider.
at::Tensor plus_bias(const at::Tensor& product, const at::Tensor& bias) {
  return product + bias.to(product.scalar_type());
}

}  // namespace

at::Tensor sinusoids(const Problem& problem, std::int64_t first, std::int64_t count) {
  const std::int64_t width = problem.width();
  const at::Tensor place = at::arange(first, first + count, at::kDouble).unsqueeze(1);
  const at::Tensor rate =
      at::exp(at::arange(0, width, 2, at::kDouble) * (-std::log(10000.0) / double(width)));
  const at::Tensor both = at::stack({at::sin(place * rate), at::cos(place * rate)}, 2);
  return both.flatten(1)
      .narrow(1, 0, width)
      .to(at::Device(problem.device), scalar_type(problem.dtype));
}

Normalise::Normalise(Norm norm, const Problem& problem)
    : torch::nn::Module("norm"),
      norm_(norm),
      weight_(
          register_parameter("weight", constant({problem.width()}, 1, problem), problem.gradient)) {
  if (norm == Norm::rms) return;
  bias_ = register_parameter("bias", constant({problem.width()}, 0, problem), problem.gradient);
}

at::Tensor Normalise::forward(const at::Tensor& x) const {
  if (norm_ == Norm::layer) {
    return at::layer_norm(x, {x.size(-1)}, weight_, bias_, norm_epsilon);
  }
  const bool narrow = at::elementSize(x.scalar_type()) < 4;
  const at::Tensor wide = narrow ? x.to(at::kFloat) : x;
  const at::Tensor size = wide.pow(2).mean(-1, /*keepdim=*/true).add(norm_epsilon).rsqrt();
  return (wide * size).to(x.scalar_type()) * weight_;
}

FeedForward::FeedForward(const ModelOptions& options, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("mlp"), mlp_(options.mlp) {
  const std::int64_t width = problem.width();
  const std::int64_t hidden = mlp_width(options, problem);
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(name, matrix(seed, "mlp_" + name, rows, columns, problem),
                              problem.gradient);
  };
  const auto bias = [&](const std::string& name, std::int64_t size) {
    return register_parameter(name, constant({size}, 0, problem), problem.gradient);
  };
  in_ = weight("in", width, hidden);
  out_ = weight("out", hidden, width);
  if (mlp_ == Mlp::gated) {
    gate_ = weight("gate", width, hidden);
  } else {
    in_bias_ = bias("in_bias", hidden);
    out_bias_ = bias("out_bias", width);
  }
}

// Separate statements free each tensor as early as possible: these are the widest tensors.
at::Tensor FeedForward::forward(const at::Tensor& x) const {
  if (mlp_ == Mlp::gated) {
    at::Tensor hidden = at::silu(at::matmul(x, gate_));
    hidden = hidden * at::matmul(x, in_);
    return at::matmul(hidden, out_);
  }
  at::Tensor hidden = plus_bias(at::matmul(x, in_), in_bias_);
  hidden = at::gelu(hidden);
  return plus_bias(at::matmul(hidden, out_), out_bias_);
}

Decoder::Decoder(const ModelOptions& options, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("decoder"), sinusoids_(sinusoids(problem, 0, problem.length)) {
  const std::int64_t width = problem.width();
  const auto norm = [&](const std::string& name) {
    return register_module(name, std::make_shared<Normalise>(options.norm, problem));
  };
  for (const std::string number : {"0", "1"}) {
    const std::string name = "weight_" + number;
    steps_.push_back(
        {norm("norm_" + number),
         register_parameter(name, matrix(seed, "decoder_" + name, width, width, problem),
                            problem.gradient),
         register_parameter("bias_" + number, constant({width}, 0, problem), problem.gradient)});
  }
  last_ = norm("last_norm");
}

at::Tensor Decoder::forward(const at::Tensor& vectors, const at::Tensor& places) const {
  at::Tensor x = vectors + sinusoids_.index_select(0, places);
  for (const Step& step : steps_) {
    x = at::gelu(plus_bias(at::matmul(step.norm->forward(x), step.weight), step.bias));
  }
  return last_->forward(x);
}

GatedConvolution::GatedConvolution(std::int64_t taps, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("convolution") {
  const std::int64_t width = problem.width();
  taps_ = register_module("taps", short_convolution(problem, taps));
  taps_->draw_parameters(seed);
  bias_ = register_parameter("bias", constant({width}, 0, problem), problem.gradient);
  gate_ = register_parameter("gate", matrix(seed, "gate", width, width, problem), problem.gradient);
  gate_bias_ = register_parameter("gate_bias", constant({width}, 0, problem), problem.gradient);
}

at::Tensor GatedConvolution::forward(const at::Tensor& x, State* state) {
  const at::Tensor seen = taps_->forward(x, state) + bias_;
  if (state != nullptr) state->position += x.size(1);
  return at::addcmul(x, seen, at::matmul(x, gate_) + gate_bias_);
}

State GatedConvolution::empty_state(std::int64_t batch, const at::TensorOptions& tensor) const {
  State state;
  taps_->add_state(state, batch, tensor);
  return state;
}

}  // namespace attnbench::tasks::training
