// The workspace of the running memory's passes.
#pragma once

#include "attention/kernels/cuda/lavo/arguments.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

/// What both passes have.
struct MemorySpace {
  float* sums;
  int* counts;
  MemoryCarry<float> after;

  MemorySpace(Workspace& space, const LavoSizes& sizes, const MemoryPlan& plan) {
    const std::int64_t heads = sizes.batch * sizes.heads;
    sums = space.take<float>(heads * plan.summing.count * sizes.head_dim);
    counts = space.take<int>(sizes.batch * plan.summing.count);
    after.mean = space.take<float>(heads * sizes.bases);
    after.sum = space.take<float>(heads * sizes.head_dim);
    after.count = space.take<std::int64_t>(sizes.batch);
    after.sum_count = space.take<std::int64_t>(sizes.batch);
  }
};

/// What the backward pass has beside.
template <class T>
MemoryGradientArguments<T> memory_gradient_space(Workspace& space, const LavoSizes& sizes,
                                                 const MemoryPlan& plan) {
  const std::int64_t heads = sizes.batch * sizes.heads, each = sizes.bases * sizes.head_dim;
  MemoryGradientArguments<T> g;
  g.grads = space.take<float>(heads * sizes.length * sizes.bases);
  g.grad_sums = space.take<float>(heads * plan.reading.count * sizes.bases);
  g.read = space.take<int>(sizes.batch * sizes.length);
  g.of_reading = space.take<float>(heads * plan.reading.count * each);
  g.of_tokens = space.take<float>(heads * plan.summing.count * each);
  return g;
}

}  // namespace attnbench::kernels::cuda
