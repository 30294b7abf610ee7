#include <stdexcept>

#include "attention/forms/causal_product.hpp"
#include "attention/forms/kernel_call.hpp"
#include "attention/kernels/causal_product.hpp"
#include "attention/team.hpp"

namespace attnbench::causal_product {
namespace {

using at::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

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

template <class R>
R* numbers(const Tensor& carried) {
  if (!carried.is_contiguous()) throw std::logic_error("a memory must be dense");
  return carried.data_ptr<R>();
}

Tensor forward(const Call& call, const Memory* memory) {
  const auto sizes = call.sizes();
  const Tensor out =
      at::empty({sizes.batch, sizes.heads, sizes.length, sizes.value_dim}, call.c.options());
  dispatch_element(call.c, [&](auto element) {
    using T = decltype(element);
    using R = kernels::Compute<T>;
    AtenTeam team;
    auto arguments = call.arguments<T>();
    arguments.out = kernel_rows<T>(out);
    if (memory != nullptr) {
      arguments.memory = numbers<R>(memory->sum);
      if (call.form.normalised) arguments.total = numbers<R>(memory->normaliser);
    }
    const auto bytes = kernels::causal_product_forward_bytes<T>(sizes, team.size());
    const Tensor workspace = kernel_workspace(bytes);
    kernels::causal_product_forward(sizes, arguments, team, workspace.data_ptr(), bytes);
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
    dispatch_element(call.c, [&](auto element) {
      using T = decltype(element);
      AtenTeam team;
      const auto bytes = kernels::causal_product_backward_bytes<T>(sizes, team.size());
      const Tensor workspace = kernel_workspace(bytes);
      kernels::causal_product_backward(
          sizes, call.arguments<T>(),
          {kernel_rows<const T>(d_out), kernel_rows<T>(dx), kernel_rows<T>(dy), kernel_rows<T>(dc)},
          team, workspace.data_ptr(), bytes);
    });
    return {dx, dy, dc, Tensor(), Tensor(), Tensor()};
  }
};

}  // namespace

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
