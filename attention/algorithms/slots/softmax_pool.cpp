// Keys and values pooled by the same weights: in one kernel where it supports that, else by two
// softmaxes.
#include "attention/kernels/softmax_pool.hpp"
#include "attention/algorithms/slots/slots.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"

namespace attnbench::slots {
namespace {

using at::Tensor;

ATTNBENCH_CPU_KERNEL(softmax_pool)

Pooled at_once(const SoftmaxCall& call) {
  const Tensor q = with_dense_rows(call.q), k = with_dense_rows(call.k),
               v = with_dense_rows(call.v);
  const Tensor mask = call.key_mask.defined() ? call.key_mask.contiguous() : call.key_mask;
  kernels::SoftmaxSizes sizes;
  sizes.batch = q.size(0);
  sizes.heads = q.size(1);
  sizes.kv_heads = k.size(1);
  sizes.length = q.size(2);
  sizes.key_length = k.size(2);
  sizes.head_dim = q.size(3);
  sizes.value_dim = v.size(3);
  sizes.scale = call.scale;
  const auto room = [&](std::int64_t width) {
    return at::empty({sizes.batch, sizes.heads, sizes.length, width}, q.options());
  };
  const Pooled pooled{room(sizes.head_dim), room(sizes.value_dim)};
  AT_DISPATCH_FLOATING_TYPES(q.scalar_type(), "softmax_pool", [&] {
    kernels::SoftmaxPoolArguments<scalar_t> arguments;
    arguments.q = kernel_rows<const scalar_t>(q);
    arguments.k = kernel_rows<const scalar_t>(k);
    arguments.v = kernel_rows<const scalar_t>(v);
    if (mask.defined()) {
      arguments.key_mask = static_cast<const std::uint8_t*>(mask.data_ptr());
      arguments.mask_stride = mask.stride(0);
    }
    arguments.out = kernel_rows<scalar_t>(pooled.values);
    arguments.keys_out = kernel_rows<scalar_t>(pooled.keys);
    OnCpu place;
    run_softmax_pool<scalar_t>(place, q, sizes, arguments);
  });
  return pooled;
}

}  // namespace

Pooled softmax_pooled(const SoftmaxCall& call) {
  if (call.q.is_cpu() && call.q.element_size() > 2 && !gradient_wanted({call.q, call.k, call.v})) {
    const at::NoGradGuard no_grad;
    return at_once(call);
  }
  SoftmaxCall of_keys = call;
  of_keys.v = call.k;
  return {softmax_tiled(of_keys), softmax_tiled(call)};
}

bool pooled_at_once(const Problem& problem) {
  return !is_cuda(problem.device) && bytes_of(problem.dtype) > 2 && !problem.gradient;
}

double pooled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes) {
  if (!pooled_at_once(problem)) return tiled_workspace_bytes(problem, sizes);
  const int threads = AtenTeam().size();
  return static_cast<double>(problem.dtype == Dtype::float64
                                 ? kernels::softmax_pool_bytes<double>(sizes, threads)
                                 : kernels::softmax_pool_bytes<float>(sizes, threads));
}

}  // namespace attnbench::slots
