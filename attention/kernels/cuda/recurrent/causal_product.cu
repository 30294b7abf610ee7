#include "attention/kernels/cuda/recurrent/causal_product.hpp"

#include "attention/kernels/cuda/recurrent/recurrent.cuh"

namespace attnbench::kernels::cuda {
namespace {

RecurrentShape shape_of(const CausalProductSizes& sizes) {
  return {sizes.batch * sizes.heads, sizes.length, sizes.features, sizes.value_dim};
}

/// Calls f with the family of these sizes.
template <class T, class F>
auto with_family(const CausalProductSizes& sizes, F&& f) {
  if constexpr (std::is_same_v<T, float>) {
    if (sizes.decays) return f(std::type_identity<DecayingProductFamily>{});
  } else if (sizes.decays) {
    throw std::logic_error("a decay is for fp32 alone on CUDA; convert queries, keys and values");
  }
  return f(std::type_identity<ProductFamily>{});
}

template <class T>
RecurrentArguments<T> arguments_of(const CausalProductSizes& sizes,
                                   const CausalProductArguments<T>& arguments) {
  RecurrentArguments<T> a;
  a.query = arguments.query;
  a.key = arguments.key;
  a.values = arguments.values;
  a.out = arguments.out;
  if constexpr (std::is_same_v<T, float>) a.log_decay = arguments.log_decay;
  a.mask = arguments.key_mask;
  a.mask_stride = arguments.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.kind = static_cast<int>(sizes.feature);
  a.normalised = sizes.normalised;
  a.epsilon = static_cast<float>(sizes.epsilon);
  return a;
}

}  // namespace

std::string causal_product_refusal(const CausalProductSizes& sizes) {
  return recurrent_refusal(shape_of(sizes), "features");
}
std::string causal_product_backward_refusal(const CausalProductSizes& sizes) {
  return recurrent_backward_refusal(shape_of(sizes), "features");
}

template <class T>
std::size_t causal_product_forward_bytes(const CausalProductSizes& sizes) {
  require(causal_product_refusal(sizes));
  return with_family<T>(sizes, [&](auto family) {
    return recurrent_bytes<typename decltype(family)::type>(shape_of(sizes), false);
  });
}

template <class T>
void causal_product_forward(const CausalProductSizes& sizes,
                            const CausalProductArguments<T>& arguments, Stream stream,
                            void* workspace, std::size_t workspace_bytes) {
  require(causal_product_refusal(sizes));
  RecurrentArguments<T> a = arguments_of(sizes, arguments);
  a.memory = arguments.memory;
  if (sizes.normalised) a.total = arguments.total;
  with_family<T>(sizes, [&](auto family) {
    recurrent_forward<typename decltype(family)::type>(a, shape_of(sizes), stream, workspace,
                                                       workspace_bytes);
  });
}

template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes& sizes) {
  require(causal_product_backward_refusal(sizes));
  return with_family<T>(sizes, [&](auto family) {
    return recurrent_bytes<typename decltype(family)::type>(shape_of(sizes), true);
  });
}

template <class T>
void causal_product_backward(const CausalProductSizes& sizes,
                             const CausalProductArguments<T>& arguments,
                             const CausalProductGradients<T>& gradients, Stream stream,
                             void* workspace, std::size_t workspace_bytes) {
  require(causal_product_backward_refusal(sizes));
  const RecurrentGradients<T> to{gradients.d_out, gradients.d_query, gradients.d_key,
                                 gradients.d_values};
  with_family<T>(sizes, [&](auto family) {
    recurrent_backward<typename decltype(family)::type>(
        arguments_of(sizes, arguments), to, shape_of(sizes), stream, workspace, workspace_bytes);
  });
}

#define ATTNBENCH_INSTANTIATE(T)                                                                \
  template std::size_t causal_product_forward_bytes<T>(const CausalProductSizes&);              \
  template void causal_product_forward<T>(                                                      \
      const CausalProductSizes&, const CausalProductArguments<T>&, Stream, void*, std::size_t); \
  template std::size_t causal_product_backward_bytes<T>(const CausalProductSizes&);             \
  template void causal_product_backward<T>(                                                     \
      const CausalProductSizes&, const CausalProductArguments<T>&,                              \
      const CausalProductGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
