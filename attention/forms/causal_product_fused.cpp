#include <stdexcept>

#include "attention/forms/causal_product.hpp"
#include "attention/forms/kernel_call.hpp"
#include "attention/kernels/causal_product.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/causal_product.hpp"
#endif

namespace attnbench::causal_product {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

ATTNBENCH_KERNEL(causal_product_forward)
ATTNBENCH_KERNEL(causal_product_backward)

kernels::ProductFeature feature_for_kernel(Feature feature) {
  if (feature == Feature::identity) return kernels::ProductFeature::identity;
  if (feature == Feature::elu_plus_one) return kernels::ProductFeature::elu_plus_one;
  throw std::logic_error("the kernel has no such feature");
}

/// One call: dense rows of one dtype.
struct Call {
  Tensor x, y, c;
  Form form;

  kernels::CausalProductSizes sizes() const {
    kernels::CausalProductSizes sizes;
    sizes.batch = c.size(0);
    sizes.heads = c.size(1);
    sizes.length = c.size(2);
    sizes.features = y.size(3);
    sizes.value_dim = c.size(3);
    sizes.feature = feature_for_kernel(form.feature);
    sizes.normalised = form.normalised;
    sizes.epsilon = form.epsilon;
    return sizes;
  }
  template <class T>
  kernels::CausalProductArguments<T> arguments() const {
    kernels::CausalProductArguments<T> arguments;
    arguments.query = kernel_rows<const T>(x);
    arguments.key = kernel_rows<const T>(y);
    arguments.values = kernel_rows<const T>(c);
    return arguments;
  }
};

Tensor forward(const Call& call, const Memory* memory) {
  const auto sizes = call.sizes();
  const Tensor out =
      at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.c.options());
  on_kernels(call.c, [&](auto element, auto& place) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    if (memory != nullptr) {
      arguments.memory = kernel_numbers<R>(memory->sum);
      if (call.form.normalised) arguments.total = kernel_numbers<R>(memory->normaliser);
    }
    run_causal_product_forward<T>(place, out, sizes, arguments);
  });
  return out;
}

struct Fused : torch::autograd::Function<Fused> {
  static Tensor forward(AutogradContext* context, const Tensor& x, const Tensor& y, const Tensor& c,
                        std::int64_t feature, bool normalised, double epsilon) {
    const Call call{x, y, c, {static_cast<Feature>(feature), normalised, epsilon}};
    context->save_for_backward({x, y, c});
    context->saved_data["feature"] = feature;
    context->saved_data["normalised"] = normalised;
    context->saved_data["epsilon"] = epsilon;
    return causal_product::forward(call, nullptr);
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const auto saved = context->get_saved_variables();
    auto& data = context->saved_data;
    const Call call{saved[0],
                    saved[1],
                    saved[2],
                    {static_cast<Feature>(data["feature"].toInt()), data["normalised"].toBool(),
                     data["epsilon"].toDouble()}};
    const auto sizes = call.sizes();
    const Tensor d_out = with_dense_rows(gradients[0]);
    const Tensor dx = at::empty(call.x.sizes(), call.x.options());
    const Tensor dy = at::empty(call.y.sizes(), call.y.options());
    const Tensor dc = at::empty(call.c.sizes(), call.c.options());
    on_kernels(call.c, [&](auto element, auto& place) {
      using T = decltype(element);
      run_causal_product_backward<T>(
          place, d_out, sizes, call.arguments<T>(),
          kernels::CausalProductGradients<T>{kernel_rows<const T>(d_out), kernel_rows<T>(dx),
                                             kernel_rows<T>(dy), kernel_rows<T>(dc)});
    });
    return {dx, dy, dc, Tensor(), Tensor(), Tensor()};
  }
};

kernels::CausalProductSizes sizes_of(const Problem& problem, std::int64_t features) {
  kernels::CausalProductSizes sizes;
  sizes.batch = problem.batch;
  sizes.heads = problem.heads;
  sizes.length = problem.length;
  sizes.features = features;
  sizes.value_dim = problem.value_dim;
  return sizes;
}

}  // namespace

Support fused_supports(const Problem& problem, std::int64_t features) {
  return supported_by_kernels(problem, [&]() -> std::string {
    const auto sizes = sizes_of(problem, features);
#ifdef ATTNBENCH_CUDA_KERNELS
    const std::string forward = kernels::cuda::causal_product_refusal(sizes);
    if (!forward.empty() || !problem.gradient) return forward;
    return kernels::cuda::causal_product_backward_refusal(sizes);
#else
    static_cast<void>(sizes);
    return {};
#endif
  });
}

double fused_workspace_bytes(const Problem& problem, std::int64_t features) {
  return predicted_causal_product_forward_bytes(problem, sizes_of(problem, features));
}

Tensor fused(const Tensor& x, const Tensor& y, const Tensor& c, const Form& form,
             const Memory* memory) {
  const auto type =
      at::promote_types(at::promote_types(x.scalar_type(), y.scalar_type()), c.scalar_type());
  const Call call{with_dense_rows(x.to(type)), with_dense_rows(y.to(type)),
                  with_dense_rows(c.to(type)), form};
  Tensor out;
  if (memory == nullptr) {
    out = Fused::apply(call.x, call.y, call.c, static_cast<std::int64_t>(form.feature),
                       form.normalised, form.epsilon);
  } else {
    const at::NoGradGuard no_grad;
    out = forward(call, memory);
  }
  return out.to(c.scalar_type());
}

}  // namespace attnbench::causal_product
