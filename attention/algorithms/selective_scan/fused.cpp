// The selective scan in one kernel, see attention/kernels/selective_scan.hpp; steps, skip and
// padding are tensor operations around it.
#include "attention/algorithms/selective_scan/selective_scan.hpp"
#include "attention/algorithms/tokens/kernel_call.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/kernels/selective_scan.hpp"

namespace attnbench::selective_scan {
namespace {

using at::Tensor;

ATTNBENCH_CPU_KERNEL(selective_scan_forward)
ATTNBENCH_CPU_KERNEL(selective_scan_backward)

/// Float32 or float64 tensors with dense rows.
struct KernelTensors {
  Tensor step, value;  ///< delta and x [B, H, T, D]
  Tensor input, read;  ///< B and C [B, G, T, N]
  Tensor rate;         ///< [H, N, D], dense

  kernels::SelectiveScanSizes sizes() const {
    return {value.size(0), value.size(1), input.size(1),
            value.size(2), input.size(3), value.size(3)};
  }
  template <class R>
  kernels::SelectiveScanArguments<R> arguments() const {
    kernels::SelectiveScanArguments<R> arguments;
    arguments.step = kernel_rows<const R>(step);
    arguments.values = kernel_rows<const R>(value);
    arguments.input = kernel_rows<const R>(input);
    arguments.read = kernel_rows<const R>(read);
    arguments.rate = rate.data_ptr<R>();
    return arguments;
  }
  /// Runs `body(element, place)` for the types of this kernel.
  template <class Body>
  void on_place(const Body& body) const {
    OnCpu place;
    AT_DISPATCH_FLOATING_TYPES(value.scalar_type(), "selective_scan",
                               [&] { body(scalar_t{}, place); });
  }
};

Tensor empty_like_rows(const Tensor& x) {
  return at::empty(x.sizes(), x.options().requires_grad(false));
}

Tensor run_forward(const KernelTensors& x, const Tensor& state) {
  const Tensor out = empty_like_rows(x.value);
  x.on_place([&](auto element, auto& place) {
    using R = decltype(element);
    auto arguments = x.arguments<R>();
    arguments.out = kernel_rows<R>(out);
    if (state.defined()) arguments.memory = kernel_numbers<R>(state);
    run_selective_scan_forward<R>(place, out, x.sizes(), arguments);
  });
  return out;
}

struct ScanKernelNode : torch::autograd::Function<ScanKernelNode> {
  using Context = torch::autograd::AutogradContext;
  using Variables = torch::autograd::variable_list;

  static Tensor forward(Context* context, const Tensor& step, const Tensor& value,
                        const Tensor& input, const Tensor& read, const Tensor& rate) {
    context->save_for_backward({step, value, input, read, rate});
    return run_forward({step, value, input, read, rate}, {});
  }

  static Variables backward(Context* context, const Variables& upstream) {
    const auto saved = context->get_saved_variables();
    const KernelTensors x{saved[0], saved[1], saved[2], saved[3], saved[4]};
    const Tensor d_out = with_dense_rows(upstream[0]);
    const Tensor d_step = empty_like_rows(x.step), d_value = empty_like_rows(x.value);
    const Tensor d_input = empty_like_rows(x.input), d_read = empty_like_rows(x.read);
    const Tensor d_rate =
        at::empty({x.value.size(0), x.rate.size(0), x.rate.size(1), x.rate.size(2)},
                  x.rate.options().requires_grad(false));
    x.on_place([&](auto element, auto& place) {
      using R = decltype(element);
      const kernels::SelectiveScanGradients<R> gradients{
          kernel_rows<const R>(d_out), kernel_rows<R>(d_step), kernel_rows<R>(d_value),
          kernel_rows<R>(d_input),     kernel_rows<R>(d_read), d_rate.data_ptr<R>()};
      run_selective_scan_backward<R>(place, d_out, x.sizes(), x.arguments<R>(), gradients);
    });
    return {d_step, d_value, d_input, d_read, d_rate.sum(0)};
  }
};

/// z [B, H, T, D]; of few numbers by the weight of each head.
Tensor said_steps(const Call& call, const Tensor& step) {
  if (!call.step_weight.defined()) return step;
  // [G, R, W], the channels of a group side by side, so that steps are read once for all heads.
  const std::int64_t groups = step.size(1), heads = call.step_weight.size(0) / groups;
  const Tensor weight = call.step_weight.to(step.scalar_type())
                            .unflatten(0, at::IntArrayRef{groups, heads})
                            .transpose(1, 2)
                            .flatten(2);
  return at::matmul(step, weight)
      .unflatten(3, at::IntArrayRef{heads, call.step_weight.size(2)})
      .transpose(2, 3)
      .flatten(1, 2);
}

}  // namespace

Tensor fused(const Call& call, Tensor state) {
  const at::AutoGradMode record(!state.defined() && at::GradMode::is_enabled());
  const auto type = compute_type(call.value.scalar_type());
  const auto given = [&](const Tensor& x) {
    return with_dense_rows(without_padding(x.to(type), call.key_mask));
  };
  const auto of_heads = [&](const Tensor& x) { return x.to(type).unsqueeze(1); };  // [H, 1, D]
  const Tensor value = given(call.value);
  const Tensor raw = said_steps(call, given(call.step)) + of_heads(call.bias);
  const Tensor step = without_padding(at::softplus(raw, 1, 40), call.key_mask);
  const KernelTensors x{with_dense_rows(step), value, given(call.input), given(call.read),
                        -call.a_log.to(type).exp().contiguous()};
  const Tensor sums = state.defined()
                          ? run_forward(x, state)
                          : ScanKernelNode::apply(x.step, x.value, x.input, x.read, x.rate);
  const Tensor y = at::addcmul(sums, value, of_heads(call.skip));
  return without_padding(y, call.key_mask).to(call.value.scalar_type());
}

}  // namespace attnbench::selective_scan
