#include "attention/algorithms/slots/linformer_cost.hpp"

#include <algorithm>

#include "attention/algorithms/slots/sequence_projection.hpp"
#include "attention/algorithms/softmax/forms.hpp"
#include "attention/torch/cuda.hpp"

namespace attnbench {
namespace {

/// Sizes as real numbers: all query rows, all key rows, L, both widths, and the bytes of one number
/// given and computed.
struct Sizes {
  explicit Sizes(const Options& options, const Problem& problem)
      : queries(real(problem.batch * problem.heads * problem.length)),
        keys(real(problem.batch * problem.kv_heads * problem.key_length)),
        latents(real(options.integer("projected_length"))),
        dims(real(problem.head_dim + problem.value_dim)),
        bytes(real(bytes_of(problem.dtype))),
        wide(std::max(bytes, 4.0)),
        slots(real(problem.batch * problem.kv_heads) * latents * dims),
        // A product with a matrix that all heads share keeps its other side laid out anew.
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

Cost linformer_composite_cost(const Options& options, const Problem& problem) {
  const Sizes n(options, problem);
  const double scaled = n.queries * Sizes::real(problem.head_dim);
  Cost cost = common_cost(options, problem);
  cost.workspace_bytes = n.wide * (n.slots + 2 * n.queries * n.latents + scaled);
  cost.saved_bytes = n.wide * (n.slots + n.copied + n.queries * n.latents + scaled);
  cost.backward_flops = 2;
  return cost;
}

kernels::SoftmaxSizes linformer_tiled_sizes(const Options& options, const Problem& problem) {
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

Cost linformer_tiled_cost(const Options& options, const Problem& problem) {
  const Sizes n(options, problem);
  double kernel = tiled_workspace_bytes(problem, linformer_tiled_sizes(options, problem));
  Cost cost = common_cost(options, problem);
  if (is_cuda(problem.device)) {
    cost.workspace_bytes = n.bytes * n.slots + kernel;
    cost.saved_bytes = n.bytes * (n.slots + n.copied) + n.wide * n.queries;
    cost.backward_flops = 2.5;
    return cost;
  }
  kernel = std::max(kernel,
                    project_sequence_workspace_bytes(problem, options.integer("projected_length")));
  cost.workspace_bytes = n.wide * n.slots + kernel;
  if (n.bytes < n.wide) cost.workspace_bytes += n.wide * n.queries * n.dims;
  cost.saved_bytes = n.wide * (n.slots + n.copied + n.queries);
  cost.backward_flops = 2.5;
  return cost;
}

}  // namespace attnbench
