// What the whole pool's entry points call, compiled for each type of numbers in a file of its own.
#pragma once

#include <cstddef>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/cuda/pool/plan.hpp"
#include "attention/kernels/whole_pool.hpp"

namespace attnbench::kernels::cuda {

inline WholePoolShape shape_of(const WholePoolSizes& sizes) {
  return {sizes.batch * sizes.heads, sizes.length, sizes.key_length, sizes.latents,
          sizes.value_dim};
}

/// On the tensor cores: T of 16 bits, where a block of the card can hold the averages.
template <class T>
std::size_t pool_forward_bytes(const WholePoolSizes& sizes);
template <class T>
void pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                  Stream stream, void* workspace, std::size_t bytes);

/// T of 16 bits, at most 128 columns of values.
constexpr std::int64_t most_grad_columns = 128;
template <class T>
std::size_t pool_backward_bytes(const WholePoolSizes& sizes);
template <class T>
void pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                   const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                   std::size_t bytes);

/// The same of logits that are made of directions.
template <class T>
std::size_t directed_pool_forward_bytes(const WholePoolSizes& sizes);
template <class T>
void directed_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                           Stream stream, void* workspace, std::size_t bytes);

/// In fp32 on the CUDA cores, for any T.
template <class T>
std::size_t exact_pool_forward_bytes(const WholePoolSizes& sizes);
template <class T>
void exact_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        Stream stream, void* workspace, std::size_t bytes);
template <class T>
std::size_t exact_pool_backward_bytes(const WholePoolSizes& sizes);
template <class T>
void exact_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                         std::size_t bytes);

}  // namespace attnbench::kernels::cuda
