#include "attention/algorithms/slots/sequence_projection.hpp"

#include <algorithm>

#include "attention/entry_parts.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/blocks.hpp"
#include "attention/kernels/sequence_projection.hpp"

namespace attnbench {
namespace {

using at::Tensor;

ATTNBENCH_CPU_KERNEL(sequence_projection)

}  // namespace

Tensor project_sequence(const Tensor& by, const Tensor& x, const Tensor& key_mask) {
  const at::NoGradGuard no_grad;
  const Tensor tokens = with_dense_rows(x);
  Tensor weights = by.to(compute_type(x.scalar_type()));
  if (weights.stride(-1) != 1) weights = weights.contiguous();
  const Tensor mask = key_mask.defined() ? key_mask.contiguous() : key_mask;
  kernels::SequenceProjectionSizes sizes;
  sizes.batch = x.size(0);
  sizes.heads = x.size(1);
  sizes.length = x.size(2);
  sizes.slots = weights.size(-2);
  sizes.dim = x.size(3);
  Tensor out = at::empty({sizes.batch, sizes.heads, sizes.slots, sizes.dim}, weights.options());
  on_cpu_only(tokens, [&](auto element, OnCpu& place) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    kernels::SequenceProjectionArguments<T> arguments;
    arguments.tokens = kernel_rows<const T>(tokens);
    arguments.weights = {static_cast<const R*>(weights.data_ptr()), 0,
                         weights.dim() == 3 ? weights.stride(0) : 0, weights.stride(-2)};
    if (mask.defined()) {
      arguments.key_mask = static_cast<const std::uint8_t*>(mask.data_ptr());
      arguments.mask_stride = mask.stride(0);
    }
    arguments.out = kernel_rows<R>(out);
    run_sequence_projection<T>(place, out, sizes, arguments);
  });
  return out;
}

double project_sequence_workspace_bytes(const Problem& problem, std::int64_t slots) {
  kernels::SequenceProjectionSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.kv_heads;
  sizes.length = problem.key_length;
  sizes.slots = slots;
  sizes.dim = std::max(problem.head_dim, problem.value_dim);
  return predicted_cpu_sequence_projection_bytes(problem, sizes);
}

}  // namespace attnbench
