#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/recurrence/fused_call.hpp"
#include "attention/kernels/causal_product.hpp"
#ifdef ATTNBENCH_CUDA_KERNELS
#include "attention/kernels/cuda/recurrent/causal_product.hpp"
#endif

namespace attnbench::causal_product {
namespace {

using at::Tensor;

ATTNBENCH_KERNEL(causal_product_forward)
ATTNBENCH_KERNEL(causal_product_backward)

/// See recurrence/fused_call.hpp.
struct Product {
  using Form = causal_product::Form;
  using Carry = Memory;
  using Sizes = kernels::CausalProductSizes;
  template <class T>
  using Gradients = kernels::CausalProductGradients<T>;

  static c10::IValue pack(const Form& form) { return form.packed(); }
  static Form unpack(const c10::IValue& value) { return Form::unpacked(value); }

  static Sizes sizes(std::int64_t rows, const Form& form) {
    Sizes sizes;
    sizes.features = rows;
    sizes.feature = form.feature == Feature::elu_plus_one ? kernels::ProductFeature::elu_plus_one
                                                          : kernels::ProductFeature::identity;
    sizes.normalised = form.normalised;
    sizes.epsilon = form.epsilon;
    return sizes;
  }
  template <class T>
  static auto arguments(const kernels::Rows<const T>& query, const kernels::Rows<const T>& key,
                        const kernels::Rows<const T>& values) {
    kernels::CausalProductArguments<T> arguments;
    arguments.query = query;
    arguments.key = key;
    arguments.values = values;
    return arguments;
  }

  static Carry empty(const Tensor& values, std::int64_t rows, const Form& form) {
    const auto wide = values.options().dtype(compute_type(values.scalar_type()));
    Carry carry{at::zeros({values.size(0), values.size(1), rows, values.size(3)}, wide), {}};
    if (form.normalised) {
      carry.normaliser = at::zeros({values.size(0), values.size(1), rows}, wide);
    }
    return carry;
  }
  template <class T>
  static void set_carry(kernels::CausalProductArguments<T>& arguments, const Carry& carry,
                        const Form& form) {
    using R = kernels::Compute<T>;
    arguments.memory = kernel_numbers<R>(carry.sum);
    if (form.normalised) arguments.total = kernel_numbers<R>(carry.normaliser);
  }

  template <class T, class... Rest>
  static void forward(Rest&&... rest) {
    run_causal_product_forward<T>(std::forward<Rest>(rest)...);
  }
  template <class T, class... Rest>
  static void backward(Rest&&... rest) {
    run_causal_product_backward<T>(std::forward<Rest>(rest)...);
  }

  /// The kernel has no relu: it gets the values of that feature map.
  static bool mapped(const Form& form) {
    return form.feature == Feature::relu_plus_floor || form.feature == Feature::relu;
  }
  static Tensor map(const Tensor& x, const Form& form) {
    return mapped(form) ? feature_of(x, form.feature) : x;
  }
  static Tensor map_gradient(const Tensor& value, const Tensor& d_rows, const Form& form) {
    return mapped(form) ? feature_gradient(value, d_rows, form.feature) : d_rows;
  }

  static std::string cuda_refusal([[maybe_unused]] const Sizes& sizes,
                                  [[maybe_unused]] bool gradient) {
#ifdef ATTNBENCH_CUDA_KERNELS
    const std::string forward = kernels::cuda::causal_product_refusal(sizes);
    if (!forward.empty() || !gradient) return forward;
    return kernels::cuda::causal_product_backward_refusal(sizes);
#else
    return {};
#endif
  }
};

}  // namespace

Support fused_supports(const Problem& problem, std::int64_t features) {
  return fused_call::supports<Product>(problem, features);
}

double fused_workspace_bytes(const Problem& problem, std::int64_t features) {
  return predicted_causal_product_forward_bytes(
      problem, fused_call::sizes_of<Product>(problem, features, {}));
}

Tensor fused(const Operand& x, const Operand& y, const Tensor& c, const Form& form,
             const Memory* memory) {
  return fused_call::fused<Product>({{x, y, c}, form}, memory);
}

}  // namespace attnbench::causal_product
