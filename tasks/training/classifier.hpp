// Classifier: from the features of whole sequences to logits of classes.
#pragma once

#include <vector>

#include "attention/torch/torch.hpp"
#include "core/problem.hpp"
#include "tasks/training/classifier_options.hpp"

namespace attnbench::tasks::training {

class Classifier : public torch::nn::Module {
 public:
  Classifier(const ClassifierOptions& options, const Problem& problem, std::uint64_t seed);

  /// Computes logits from features [R, T, C] of R = towers * B sequences, the first sequences of
  /// all examples before the second ones; with pooling cls [R, 1 + T, C]. key_mask [R, T] bool,
  /// true at real tokens, at least one of each sequence; undefined = all are real. Returns logits
  /// [B, classes] in the weights' dtype.
  at::Tensor forward(const at::Tensor& features, const at::Tensor& key_mask) const;

  /// Throws UsageError where a sequence of `real` [R, T] begins with padding and the pooling is
  /// cls, whose token stands before the real ones: padding would stand between them. Data that mask
  /// tokens anywhere (ClassifierOptions::masks_between) have no padding, and are not held to that.
  void expect_no_padding_after_cls(const at::Tensor& real) const;

  /// One vector a sequence, [R, C].
  at::Tensor pooled(const at::Tensor& features, const at::Tensor& key_mask) const;

  /// The learned token before each sequence, [C], first 0; undefined unless pooling is cls.
  const at::Tensor& cls() const { return cls_; }

 private:
  at::Tensor joined(const at::Tensor& pooled) const;

  const ClassifierOptions options_;
  at::Tensor cls_;
  std::vector<at::Tensor> weights_;  ///< [in, out] of each product
  std::vector<at::Tensor> biases_;
};

}  // namespace attnbench::tasks::training
