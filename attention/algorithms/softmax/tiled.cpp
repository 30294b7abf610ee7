#include "attention/algorithms/softmax/relative_band.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/softmax.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/softmax/softmax.hpp"
#endif

namespace attnbench {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

static_assert(unlimited == kernels::SoftmaxSizes::far);

ATTNBENCH_KERNEL(softmax_forward)
ATTNBENCH_KERNEL(softmax_backward)

/// `bias` may be undefined.
kernels::SoftmaxSizes sizes_of(const SoftmaxCall& call, const RelativeBias& bias) {
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
  if (bias.bias.defined()) sizes.bias_reach = bias.reach;
  return sizes;
}

template <class T>
kernels::SoftmaxArguments<T> arguments_of(const SoftmaxCall& call, const at::Tensor& out,
                                          const at::Tensor& lse, const RelativeBias& bias) {
  kernels::SoftmaxArguments<T> arguments;
  arguments.q = kernel_rows<const T>(call.q);
  arguments.k = kernel_rows<const T>(call.k);
  arguments.v = kernel_rows<const T>(call.v);
  if (call.key_mask.defined()) {
    arguments.key_mask = static_cast<const std::uint8_t*>(call.key_mask.data_ptr());
    arguments.mask_stride = call.key_mask.stride(0);
  }
  arguments.out = kernel_rows<T>(out);
  if (bias.bias.defined()) arguments.bias = kernel_numbers<kernels::Compute<T>>(bias.bias);
  if (lse.defined()) arguments.lse = static_cast<kernels::Compute<T>*>(lse.data_ptr());
  return arguments;
}

/// Returns the output [B, H, T, Dv] and writes the logarithms of the sums to `lse` if it is
/// defined.
at::Tensor run_forward(const SoftmaxCall& call, const at::Tensor& lse,
                       const RelativeBias& bias = {}) {
  const auto sizes = sizes_of(call, bias);
  auto out = at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.q.options());
  on_kernels(call.q, [&](auto element, auto& place) {
    using T = decltype(element);
    run_softmax_forward<T>(place, out, sizes, arguments_of<T>(call, out, lse, bias));
  });
  return out;
}

/// Saves the call, the output and the logarithms of the sums for the backward pass.
at::Tensor recorded_forward(AutogradContext* context, const SoftmaxCall& call,
                            const RelativeBias& bias) {
  const auto lse_type = call.q.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
  const auto lse =
      at::empty({call.q.size(0), call.q.size(1), call.q.size(2)}, call.q.options().dtype(lse_type));
  auto out = run_forward(call, lse, bias);
  save(context, {call, out, lse});
  return out;
}

/// The gradients of q, k and v; that of the bias is written to `d_bias` if it is defined.
variable_list recorded_backward(AutogradContext* context, const Variable& upstream,
                                const RelativeBias& bias, const at::Tensor& d_bias) {
  const SavedSoftmax saved = restore(context);
  const SoftmaxCall& call = saved.call;
  const auto sizes = sizes_of(call, bias);
  const auto d_out = with_dense_rows(upstream.to(call.q.scalar_type()));
  const auto dq = at::empty(call.q.sizes(), call.q.options());
  const auto dk = at::empty(call.k.sizes(), call.k.options());
  const auto dv = at::empty(call.v.sizes(), call.v.options());
  on_kernels(call.q, [&](auto element, auto& place) {
    using T = decltype(element);
    kernels::SoftmaxGradients<T> gradients{kernel_rows<const T>(d_out), kernel_rows<T>(dq),
                                           kernel_rows<T>(dk), kernel_rows<T>(dv)};
    if (d_bias.defined()) gradients.d_bias = kernel_numbers<kernels::Compute<T>>(d_bias);
    run_softmax_backward<T>(place, d_out, sizes, arguments_of<T>(call, saved.out, saved.lse, bias),
                            gradients);
  });
  return {dq, dk, dv};
}

struct Tiled : torch::autograd::Function<Tiled> {
  static Variable forward(AutogradContext* context, const Variable&, const Variable&,
                          const Variable&, const SoftmaxCall& call) {
    return recorded_forward(context, call, {});
  }
  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    variable_list gradients = recorded_backward(context, upstream[0], {}, {});
    gradients.push_back({});
    return gradients;
  }
};

struct Biased : torch::autograd::Function<Biased> {
  static Variable forward(AutogradContext* context, const Variable&, const Variable&,
                          const Variable&, const Variable& bias, const SoftmaxCall& call) {
    context->saved_data["bias"] = bias;
    return recorded_forward(context, call, {bias, bias.size(0) / 2});
  }
  static variable_list backward(AutogradContext* context, const variable_list& upstream) {
    const at::Tensor bias = context->saved_data.at("bias").toTensor();
    const at::Tensor d_bias = at::empty_like(bias);
    variable_list gradients =
        recorded_backward(context, upstream[0], {bias, bias.size(0) / 2}, d_bias);
    gradients.insert(gradients.end(), {d_bias, {}});
    return gradients;
  }
};

/// The call with dense rows and zeros for padding.
SoftmaxCall dense_call(const SoftmaxCall& call) {
  SoftmaxCall dense = call.without_padding();
  dense.q = with_dense_rows(dense.q);
  dense.k = with_dense_rows(dense.k);
  dense.v = with_dense_rows(dense.v);
  return dense;
}

/// `output` as it is, in whose graph `others` have gradients of exactly 0, and not none.
at::Tensor with_zero_gradients(const at::Tensor& output, const std::vector<at::Tensor>& others) {
  at::Tensor result = output;
  const auto always = at::ones({}, output.options().dtype(at::kBool).requires_grad(false));
  for (const at::Tensor& one : others) {
    if (gradient_wanted({one})) {
      result = at::where(always, result, one.sum().to(output.scalar_type()));
    }
  }
  return result;
}

}  // namespace

Support tiled_supports(const Problem& problem,
                       [[maybe_unused]] const kernels::SoftmaxSizes& sizes) {
  return supported_by_kernels(problem, [&]() -> std::string {
#ifdef ATTNBENCH_CUDA_KERNELS
    return kernels::cuda::softmax_refusal(sizes);
#else
    return {};
#endif
  });
}

double tiled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes) {
  return predicted_softmax_forward_bytes(problem, sizes);
}

at::Tensor softmax_tiled(const SoftmaxCall& call) {
  const SoftmaxCall dense = dense_call(call);
  if (call.key_length() == 1 && call.sees_all()) {
    // The weight is 1 and its gradient exactly 0; tiles would leave a rounding error.
    const std::int64_t group = call.q.size(1) / dense.v.size(1);
    const at::Tensor repeated = dense.v.repeat_interleave(group, 1);
    return with_zero_gradients(
        repeated.expand({-1, -1, call.length(), -1}).to(call.q.scalar_type()), {call.q, call.k});
  }
  if (!gradient_wanted({call.q, call.k, call.v})) return run_forward(dense, {});
  return Tiled::apply(dense.q, dense.k, dense.v, dense);
}

at::Tensor relative_band_tiled(const SoftmaxCall& call, const RelativeBias& bias) {
  if (!bias.bias.defined()) return softmax_tiled(call);
  if (call.key_length() == 1) return with_zero_gradients(softmax_tiled(call), {bias.bias});
  const SoftmaxCall dense = dense_call(call);
  const RelativeBias wide{bias.bias.to(compute_type(call.q.scalar_type())).contiguous(),
                          bias.reach};
  if (!gradient_wanted({call.q, call.k, call.v, bias.bias})) return run_forward(dense, {}, wide);
  return Biased::apply(dense.q, dense.k, dense.v, wide.bias, dense);
}

}  // namespace attnbench
