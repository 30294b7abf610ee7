// What the families' entry points call for their backward pass, compiled for each family and type
// of numbers in a file of its own.
#pragma once

#include <cstddef>

#include "attention/kernels/cuda/recurrent/forward.cuh"

namespace attnbench::kernels::cuda {

constexpr std::int64_t most_gradient_columns = 512;

template <class T>
struct RecurrentGradients {
  Rows<const T> d_out;
  Rows<T> d_query, d_key, d_values;
};

template <class Family, class T>
std::size_t recurrent_backward_bytes(const RecurrentShape& shape);
/// `a` as for the forward pass; its results and its carry are not looked at.
template <class Family, class T>
void recurrent_backward(RecurrentArguments<T> a, const RecurrentGradients<T>& gradients,
                        const RecurrentShape& shape, Stream stream, void* workspace,
                        std::size_t bytes);

/// Why the gradient at a size cannot be done; empty where it can.
inline std::string recurrent_backward_refusal(const RecurrentShape& shape, const char* latents) {
  const std::string why = recurrent_refusal(shape, latents);
  if (!why.empty() || shape.value_dim <= most_gradient_columns) return why;
  return "gradients of at most " + std::to_string(most_gradient_columns) +
         " columns of values on CUDA, not " + std::to_string(shape.value_dim);
}

}  // namespace attnbench::kernels::cuda
