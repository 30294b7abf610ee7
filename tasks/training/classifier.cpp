#include "tasks/training/classifier.hpp"

#include <cmath>

#include "attention/mechanism.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench::tasks::training {

Classifier::Classifier(const ClassifierOptions& options, const Problem& problem, std::uint64_t seed)
    : torch::nn::Module("classifier"), options_(options) {
  const auto zeros = [&](const std::string& name, std::int64_t size) {
    const auto place = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
    return register_parameter(name, at::zeros({size}, place), problem.gradient);
  };
  if (options.has_cls()) cls_ = zeros("cls", problem.width());
  const std::vector<std::int64_t> widths = head_widths(options, problem.width());
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    const std::string name = "weight_" + std::to_string(i);
    const double deviation = 1 / std::sqrt(static_cast<double>(widths[i]));
    weights_.push_back(register_parameter(
        name,
        draw_normal(seed, "classifier_" + name, {widths[i], widths[i + 1]}, deviation, problem),
        problem.gradient));
    biases_.push_back(zeros("bias_" + std::to_string(i), widths[i + 1]));
  }
}

void Classifier::expect_no_padding_after_cls(const at::Tensor& real) const {
  if (!options_.has_cls() || options_.masks_between) return;
  const at::Tensor padded = real.select(1, 0).logical_not();
  if (!padded.any().item<bool>()) return;
  const auto sequence = padded.nonzero()[0][0].item<std::int64_t>();
  throw UsageError("pooling cls: padding stands before the tokens of sequence " +
                   std::to_string(sequence) +
                   " of a batch, behind the token that is read; expected padding after the tokens, "
                   "or pooling mean, first or last");
}

at::Tensor Classifier::pooled(const at::Tensor& features, const at::Tensor& key_mask) const {
  const auto at_places = [&](const at::Tensor& places) {
    const at::Tensor index = places.view({-1, 1, 1}).expand({-1, 1, features.size(2)});
    return features.gather(1, index).squeeze(1);
  };
  // Not 0 or the number of real tokens: black pixels that are masked stand before and between them.
  const auto numbers = [&] {
    return at::arange(key_mask.size(1), key_mask.options().dtype(at::kLong));
  };
  switch (options_.pooling) {
    case Pooling::cls:
      return features.select(1, 0);
    case Pooling::first: {
      if (!key_mask.defined()) return features.select(1, 0);
      const std::int64_t tokens = key_mask.size(1);
      return at_places(tokens - (key_mask * (tokens - numbers())).amax(1));
    }
    case Pooling::last:
      if (!key_mask.defined()) return features.select(1, -1);
      return at_places((key_mask * numbers()).amax(1));
    case Pooling::mean:
    case Pooling::mean_padded:
      break;
  }
  if (!key_mask.defined()) return features.mean(1);
  const at::Tensor real = key_mask.unsqueeze(2);
  const at::Tensor sum = features.masked_fill(real.logical_not(), 0).sum(1);
  if (options_.pooling == Pooling::mean_padded) {
    return sum / static_cast<double>(features.size(1));
  }
  return sum / real.sum(1).to(sum.scalar_type());
}

at::Tensor Classifier::joined(const at::Tensor& pooled) const {
  if (options_.towers == 1) return pooled;
  const auto halves = pooled.chunk(2, 0);
  const at::Tensor& x = halves[0];
  const at::Tensor& y = halves[1];
  if (options_.features == TowerFeatures::concat) return at::cat({x, y}, 1);
  return at::cat({x, y, x * y, x - y}, 1);
}

at::Tensor Classifier::forward(const at::Tensor& features, const at::Tensor& key_mask) const {
  at::Tensor x = joined(pooled(features, key_mask));
  for (std::size_t i = 0; i < weights_.size(); ++i) {
    if (i > 0) x = options_.activation == HeadActivation::relu ? at::relu(x) : at::gelu(x);
    x = at::matmul(x, weights_[i]);
    x = x + biases_[i].to(x.scalar_type());
  }
  return x.to(weights_.front().scalar_type());
}

}  // namespace attnbench::tasks::training
