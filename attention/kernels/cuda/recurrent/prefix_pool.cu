#include "attention/kernels/cuda/recurrent/prefix_pool.hpp"

#include "attention/kernels/cuda/recurrent/recurrent.cuh"

namespace attnbench::kernels::cuda {
namespace {

RecurrentShape shape_of(const PrefixPoolSizes& sizes) {
  return {sizes.batch * sizes.heads, sizes.length, sizes.latents, sizes.value_dim};
}

template <class T>
RecurrentArguments<T> arguments_of(const PrefixPoolSizes& sizes,
                                   const PrefixPoolArguments<T>& arguments) {
  RecurrentArguments<T> a;
  a.query = arguments.query;
  a.key = arguments.scores;
  a.values = arguments.values;
  a.out = arguments.out;
  a.mask = arguments.key_mask;
  a.mask_stride = arguments.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.kind = static_cast<int>(sizes.query);
  a.normalised = sizes.query != PoolQuery::weights;
  a.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  return a;
}

}  // namespace

std::string prefix_pool_refusal(const PrefixPoolSizes& sizes) {
  return recurrent_refusal(shape_of(sizes), "latents");
}

template <class T>
std::size_t prefix_pool_forward_bytes(const PrefixPoolSizes& sizes) {
  require(prefix_pool_refusal(sizes));
  return recurrent_bytes<PoolFamily>(shape_of(sizes), false);
}

template <class T>
void prefix_pool_forward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         Stream stream, void* workspace, std::size_t workspace_bytes) {
  require(prefix_pool_refusal(sizes));
  RecurrentArguments<T> a = arguments_of(sizes, arguments);
  a.memory = arguments.carry.sum;
  a.total = arguments.carry.normaliser;
  a.maximum = arguments.carry.maximum;
  recurrent_forward<PoolFamily>(a, shape_of(sizes), stream, workspace, workspace_bytes);
}

std::string prefix_pool_backward_refusal(const PrefixPoolSizes& sizes) {
  return recurrent_backward_refusal(shape_of(sizes), "latents");
}

template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes& sizes) {
  require(prefix_pool_backward_refusal(sizes));
  return recurrent_bytes<PoolFamily>(shape_of(sizes), true);
}

template <class T>
void prefix_pool_backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                          const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                          std::size_t workspace_bytes) {
  require(prefix_pool_backward_refusal(sizes));
  recurrent_backward<PoolFamily>(arguments_of(sizes, arguments),
                                 RecurrentGradients<T>{gradients.d_out, gradients.d_query,
                                                       gradients.d_scores, gradients.d_values},
                                 shape_of(sizes), stream, workspace, workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(T)                                                               \
  template std::size_t prefix_pool_forward_bytes<T>(const PrefixPoolSizes&);                   \
  template void prefix_pool_forward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&,  \
                                       Stream, void*, std::size_t);                            \
  template std::size_t prefix_pool_backward_bytes<T>(const PrefixPoolSizes&);                  \
  template void prefix_pool_backward<T>(const PrefixPoolSizes&, const PrefixPoolArguments<T>&, \
                                        const PrefixPoolGradients<T>&, Stream, void*,          \
                                        std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
