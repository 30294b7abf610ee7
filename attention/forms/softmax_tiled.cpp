#include "attention/forms/kernel_call.hpp"
#include "attention/forms/softmax_saved.hpp"
#include "attention/kernels/softmax.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/softmax.hpp"
#endif

namespace attnbench {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

static_assert(unlimited == kernels::SoftmaxSizes::far);

ATTNBENCH_KERNEL(softmax_forward)
ATTNBENCH_KERNEL(softmax_backward)

kernels::SoftmaxSizes sizes_of(const SoftmaxCall& call) {
  kernels::SoftmaxSizes sizes;
  sizes.batch = call.q.size(0);
  sizes.heads = call.q.size(1);
  sizes.kv_heads = call.k.size(1);
  sizes.length = call.length();
  sizes.key_length = call.key_length();
  sizes.head_dim = call.q.size(3);
  sizes.value_dim = call.v.size(3);
  sizes.left = call.left;
  sizes.right = call.right;
  sizes.offset = call.offset;
  sizes.scale = call.scale;
  return sizes;
}

template <class T>
kernels::SoftmaxArguments<T> arguments_of(const SoftmaxCall& call, const at::Tensor& out,
                                          const at::Tensor& lse) {
  kernels::SoftmaxArguments<T> arguments;
  arguments.q = kernel_rows<const T>(call.q);
  arguments.k = kernel_rows<const T>(call.k);
  arguments.v = kernel_rows<const T>(call.v);
  if (call.key_mask.defined()) {
    arguments.key_mask = static_cast<const std::uint8_t*>(call.key_mask.data_ptr());
    arguments.mask_stride = call.key_mask.stride(0);
  }
  arguments.out = kernel_rows<T>(out);
  if (lse.defined()) arguments.lse = static_cast<kernels::Compute<T>*>(lse.data_ptr());
  return arguments;
}

/// Output [B, H, T, Dv] and, where `lse` is defined, the logarithms of the sums.
at::Tensor run_forward(const SoftmaxCall& call, const at::Tensor& lse) {
  const auto sizes = sizes_of(call);
  auto out = at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.q.options());
  on_kernels(call.q, [&](auto element, auto& place) {
    using T = decltype(element);
    run_softmax_forward<T>(place, out, sizes, arguments_of<T>(call, out, lse));
  });
  return out;
}

struct Tiled : torch::autograd::Function<Tiled> {
  static Variable forward(AutogradContext* context, const Variable& q, const Variable&,
                          const Variable&, const SoftmaxCall& call) {
    const auto lse_type = q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
    const auto lse = at::empty({q.size(0), q.size(1), q.size(2)}, q.options().dtype(lse_type));
    auto out = run_forward(call, lse);
    save(context, call, out, lse);
    return out;
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const SavedSoftmax saved = restore(context);
    const SoftmaxCall& call = saved.call;
    const auto sizes = sizes_of(call);
    const auto d_out = with_dense_rows(gradients[0]);
    const auto dq = at::empty(call.q.sizes(), call.q.options());
    const auto dk = at::empty(call.k.sizes(), call.k.options());
    const auto dv = at::empty(call.v.sizes(), call.v.options());
    on_kernels(call.q, [&](auto element, auto& place) {
      using T = decltype(element);
      run_softmax_backward<T>(
          place, d_out, sizes, arguments_of<T>(call, saved.out, saved.lse),
          kernels::SoftmaxGradients<T>{kernel_rows<const T>(d_out), kernel_rows<T>(dq),
                                       kernel_rows<T>(dk), kernel_rows<T>(dv)});
    });
    return {dq, dk, dv, {}};
  }
};

}  // namespace

Support tiled_supports(const Problem& problem, const kernels::SoftmaxSizes& sizes) {
  return supported_by_kernels(problem, [&]() -> std::string {
#ifdef ATTNBENCH_CUDA_KERNELS
    return kernels::cuda::softmax_refusal(sizes);
#else
    static_cast<void>(sizes);
    return {};
#endif
  });
}

double tiled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes) {
  return predicted_softmax_forward_bytes(problem, sizes);
}

at::Tensor softmax_tiled(const SoftmaxCall& call) {
  SoftmaxCall dense = call.without_padding();
  dense.q = with_dense_rows(dense.q);
  dense.k = with_dense_rows(dense.k);
  dense.v = with_dense_rows(dense.v);
  const bool gradient =
      at::GradMode::is_enabled() &&
      (call.q.requires_grad() || call.k.requires_grad() || call.v.requires_grad());
  if (!gradient) return run_forward(dense, {});
  return Tiled::apply(dense.q, dense.k, dense.v, dense);
}

}  // namespace attnbench
