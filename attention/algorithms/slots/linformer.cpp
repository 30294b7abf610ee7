#include "attention/algorithms/slots/linformer.hpp"

#include <algorithm>

#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/sequence_projection.hpp"

namespace attnbench::linformer {
namespace {

using at::Tensor;

ATTNBENCH_CPU_KERNEL(sequence_projection)

/// In a kernel, on the CPU; records no gradient.
Tensor projected_in_kernel(const Tensor& by, const Tensor& x, const Tensor& key_mask) {
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

/// The kernel's workspace for keys or values, whichever are wider.
double projection_workspace_bytes(const Problem& problem, std::int64_t slots) {
  kernels::SequenceProjectionSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.kv_heads;
  sizes.length = problem.key_length;
  sizes.slots = slots;
  sizes.dim = std::max(problem.head_dim, problem.value_dim);
  return predicted_cpu_sequence_projection_bytes(problem, sizes);
}

/// Sizes as real numbers: all query rows, all key rows, L, both widths, and the bytes of one input
/// element and of one element in computation.
struct Sizes {
  explicit Sizes(const Options& options, const Problem& problem)
      : queries(real(problem.batch * problem.heads * problem.length)),
        keys(real(problem.batch * problem.kv_heads * problem.key_length)),
        latents(real(options.integer("projected_length"))),
        dims(real(problem.head_dim + problem.value_dim)),
        bytes(real(bytes_of(problem.dtype))),
        wide(std::max(bytes, 4.0)),
        slots(real(problem.batch * problem.kv_heads) * latents * dims),
        // A product with a matrix that all heads share keeps a copy of its other operand.
        copied(options.boolean("per_head") ? 0 : keys * dims) {}
  static double real(std::int64_t count) { return static_cast<double>(count); }

  double queries, keys, latents, dims, bytes, wide, slots, copied;
};

Cost common_cost(const Options& options, const Problem& problem) {
  const Sizes n(options, problem);
  const double matrices = (options.boolean("share_kv") ? 1 : 2) *
                          (options.boolean("per_head") ? Sizes::real(problem.kv_heads) : 1) *
                          n.latents * Sizes::real(problem.key_length);
  Cost cost;
  cost.model_flops = 2 * n.latents * n.dims * (n.keys + n.queries);
  cost.executed_flops = cost.model_flops;
  cost.exponentials = n.queries * n.latents;
  cost.minimal_bytes = (n.dims * (n.keys + n.queries) + matrices) * n.bytes;
  return cost;
}

}  // namespace

Tensor projected(const Tensor& by, const Tensor& x, const Tensor& key_mask, at::ScalarType type,
                 bool in_kernel) {
  if (in_kernel && x.is_cpu() && !gradient_wanted({by, x})) {
    return projected_in_kernel(by, x, key_mask);
  }
  const Tensor real = without_padding(x.to(type), key_mask);
  const Tensor matrix = by.narrow(-1, 0, x.size(2)).to(type);
  if (matrix.dim() == 3 || gradient_wanted({by, x})) return at::matmul(matrix, real);
  // One product per head: matmul would copy all keys to make a single product. The gradient of the
  // products per head would hold a matrix for each, though.
  return at::bmm(matrix.expand({x.size(0) * x.size(1), -1, -1}), real.flatten(0, 1))
      .unflatten(0, at::IntArrayRef{x.size(0), x.size(1)});
}

Cost composite_cost(const Options& options, const Problem& problem) {
  const Sizes n(options, problem);
  const double scaled = n.queries * Sizes::real(problem.head_dim);
  Cost cost = common_cost(options, problem);
  cost.workspace_bytes = n.wide * (n.slots + 2 * n.queries * n.latents + scaled);
  cost.saved_bytes = n.wide * (n.slots + n.copied + n.queries * n.latents + scaled);
  cost.backward_flops = 2;
  return cost;
}

kernels::SoftmaxSizes tiled_sizes(const Options& options, const Problem& problem) {
  kernels::SoftmaxSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.kv_heads = problem.kv_heads;
  sizes.length = problem.length;
  sizes.key_length = options.integer("projected_length");
  sizes.head_dim = problem.head_dim;
  sizes.value_dim = problem.value_dim;
  sizes.left = sizes.right = unlimited;
  return sizes;
}

Cost tiled_cost(const Options& options, const Problem& problem) {
  const Sizes n(options, problem);
  double kernel = tiled_workspace_bytes(problem, tiled_sizes(options, problem));
  Cost cost = common_cost(options, problem);
  if (is_cuda(problem.device)) {
    cost.workspace_bytes = n.bytes * n.slots + kernel;
    cost.saved_bytes = n.bytes * (n.slots + n.copied) + n.wide * n.queries;
    cost.backward_flops = 2.5;
    return cost;
  }
  kernel =
      std::max(kernel, projection_workspace_bytes(problem, options.integer("projected_length")));
  cost.workspace_bytes = n.wide * n.slots + kernel;
  if (n.bytes < n.wide) cost.workspace_bytes += n.wide * n.queries * n.dims;
  cost.saved_bytes = n.wide * (n.slots + n.copied + n.queries);
  cost.backward_flops = 2.5;
  return cost;
}

}  // namespace attnbench::linformer
