// Dropout: which numbers a training step sets to zero. A generator that is seeded by the step draws
// all masks of the step, so that a resumed training has those of an unbroken one.
#pragma once

#include "attention/torch/torch.hpp"

namespace attnbench::tasks::training {

/// The dropout of a step, none by default. Masks are drawn for the sequences of `rows` examples, of
/// which the model's begin at `first_row`: processes that share a step draw the same masks and take
/// their own part. rows 0 = only the model's.
struct Dropout {
  double share = 0;  ///< of the embedding's numbers
  at::Generator generator;
  std::int64_t first_row = 0;
  std::int64_t rows = 0;
  double block_share = 0;   ///< of the outputs of each mix and of each MLP
  std::int64_t towers = 1;  ///< sequences of an example, as Batch orders them

  /// x [towers * B, …] with `part` of its numbers set to zero and the others scaled by
  /// 1 / (1 - part); x itself where `part` is 0.
  at::Tensor applied(const at::Tensor& x, double part) const {
    if (part <= 0) return x;
    const double kept = 1 - part;
    std::vector<std::int64_t> shape = x.sizes().vec();
    const std::int64_t own = shape[0] / towers;
    if (rows > 0) shape[0] = rows * towers;
    at::Tensor mask =
        at::empty(shape, x.options().requires_grad(false)).bernoulli_(kept, generator);
    if (rows > 0) mask = mask.unflatten(0, {towers, rows}).narrow(1, first_row, own).flatten(0, 1);
    return x * mask.div_(kept);
  }
};

}  // namespace attnbench::tasks::training
