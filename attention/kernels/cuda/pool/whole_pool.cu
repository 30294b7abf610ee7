#include "attention/kernels/cuda/pool/whole_pool.hpp"

#include <stdexcept>
#include <type_traits>

#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/pool/forward.cuh"

namespace attnbench::kernels::cuda {
namespace {

void require(const std::string& refusal) {
  if (!refusal.empty()) throw std::logic_error(refusal);
}

/// Why the numbers' type allows of none.
template <class T>
std::string no_directions(const WholePoolSizes& sizes) {
  if (std::is_same_v<T, float> && sizes.directions.dim != 0) {
    return "logits of fp32 tokens are not made in the kernel, but by a product beforehand";
  }
  return {};
}

/// Whether a block of the current device can hold the averages.
bool averages_fit(const WholePoolSizes& sizes) {
  return plan_reading(shape_of(sizes), card().multiprocessors, card().shared_bytes).columns > 0;
}

}  // namespace

std::string whole_pool_refusal(const WholePoolSizes& sizes) {
  const WholePoolShape shape = shape_of(sizes);
  if (shape.heads < 0 || shape.length < 0 || shape.key_length < 0 || shape.latents < 0 ||
      shape.value_dim < 0) {
    return "a size is negative";
  }
  if (sizes.directions.dim > most_pool_directions) {
    return "directions of at most " + std::to_string(most_pool_directions) +
           " numbers on CUDA, not " + std::to_string(sizes.directions.dim);
  }
  if (sizes.directions.dim != 0 && sizes.query == PoolQuery::weights) {
    return "weights are not made of directions";
  }
  if (shape.latents > most_pool_latents) {
    return "at most " + std::to_string(most_pool_latents) + " latents a head on CUDA, not " +
           std::to_string(shape.latents);
  }
  // Of the grid with the most blocks: squares of latents or tokens' columns, by heads.
  const std::int64_t squares = (shape.latents / 64 + 1) * (shape.value_dim / 64 + 1);
  if (shape.length > std::int64_t{1} << 30 || shape.key_length > std::int64_t{1} << 30 ||
      shape.heads * squares >= std::int64_t{1} << 31 || shape.value_dim > 4096) {
    return "more tokens (2^30), columns of values (4096) or heads than a grid has room for";
  }
  return {};
}

namespace {

std::string backward_refusal(const WholePoolSizes& sizes) {
  if (sizes.directions.dim != 0) return "gradients are of logits that are given";
  return whole_pool_refusal(sizes);
}

}  // namespace

template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes) {
  require(whole_pool_refusal(sizes));
  require(no_directions<T>(sizes));
  if constexpr (!std::is_same_v<T, float>) {
    if (sizes.directions.dim != 0) return directed_pool_forward_bytes<T>(sizes);
    if (averages_fit(sizes)) return pool_forward_bytes<T>(sizes);
  }
  return exact_pool_forward_bytes<T>(sizes);
}

template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        Stream stream, void* workspace, std::size_t workspace_bytes) {
  require(whole_pool_refusal(sizes));
  require(no_directions<T>(sizes));
  if constexpr (!std::is_same_v<T, float>) {
    if (sizes.directions.dim != 0) {
      return directed_pool_forward(sizes, arguments, stream, workspace, workspace_bytes);
    }
    if (averages_fit(sizes)) {
      return pool_forward(sizes, arguments, stream, workspace, workspace_bytes);
    }
  }
  exact_pool_forward(sizes, arguments, stream, workspace, workspace_bytes);
}

template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes) {
  require(backward_refusal(sizes));
  if constexpr (!std::is_same_v<T, float>) {
    if (sizes.value_dim <= most_grad_columns) return pool_backward_bytes<T>(sizes);
  }
  return exact_pool_backward_bytes<T>(sizes);
}

template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                         std::size_t workspace_bytes) {
  require(backward_refusal(sizes));
  if constexpr (!std::is_same_v<T, float>) {
    if (sizes.value_dim <= most_grad_columns) {
      return pool_backward(sizes, arguments, gradients, stream, workspace, workspace_bytes);
    }
  }
  exact_pool_backward(sizes, arguments, gradients, stream, workspace, workspace_bytes);
}

#define ATTNBENCH_INSTANTIATE(T)                                                                   \
  template std::size_t whole_pool_forward_bytes<T>(const WholePoolSizes&);                         \
  template void whole_pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, Stream, \
                                      void*, std::size_t);                                         \
  template std::size_t whole_pool_backward_bytes<T>(const WholePoolSizes&);                        \
  template void whole_pool_backward<T>(const WholePoolSizes&, const WholePoolArguments<T>&,        \
                                       const PrefixPoolGradients<T>&, Stream, void*, std::size_t);
ATTNBENCH_FOR_CUDA_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels::cuda
