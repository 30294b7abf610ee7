// Biases by distance in the softmax on CUDA: float32 numbers, whatever queries and keys are.
// Inside the family only.
#pragma once

#include "attention/kernels/cuda/softmax/call.hpp"

namespace attnbench::kernels::cuda {

/// Queries of a tile of the gradients' kernel, which leaves a part of the biases' gradient for
/// each.
constexpr int softmax_bias_rows = 32;

/// As a kernel reads them: of key s and query t, whatever lies in the band.
struct SoftmaxBias {
  const float* data = nullptr;  ///< null: there are none
  int first = 0;                ///< s - t of the first
  int last = 0;                 ///< and of the last
  int left = 0;                 ///< s - t of the first that the band sees
  int span = 0;                 ///< distances that the band sees

  SoftmaxBias() = default;
  SoftmaxBias(const SoftmaxSizes& sizes, const float* given) {
    if (sizes.bias_reach < 0) return;
    data = given;
    first = static_cast<int>(sizes.offset - sizes.bias_reach);
    last = static_cast<int>(sizes.offset + sizes.bias_reach);
    left = static_cast<int>(sizes.offset - sizes.left);
    span = static_cast<int>(sizes.left + sizes.right + 1);
  }
  /// Times log2(e), as scores are.
  constexpr float of(int distance) const {
    return data == nullptr ? 0 : 1.44269504089F * data[distance - first];
  }
  /// That of any distance, where there are biases: a wrong one beyond those that have one.
  constexpr float near(int distance) const {
    const int i = (distance < last ? distance : last) - first;
    return data[i < 0 ? 0 : i];
  }
  /// Among the distances that the band sees.
  constexpr int place(int distance) const { return distance - left; }
};

/// The parts of the biases' gradient, and the numbers of all.
inline std::int64_t softmax_bias_parts(const SoftmaxSizes& sizes) {
  return sizes.batch * sizes.heads * ((sizes.length + softmax_bias_rows - 1) / softmax_bias_rows);
}
inline std::int64_t softmax_bias_numbers(const SoftmaxSizes& sizes) {
  return sizes.bias_reach < 0 ? 0 : softmax_bias_parts(sizes) * (sizes.left + sizes.right + 1);
}

/// softmax_forward_sm80 with biases, for at most 128 columns.
template <class T>
void softmax_biased_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                         Stream stream);
/// softmax_backward_float with biases; `parts` has room for softmax_bias_numbers.
void softmax_backward_biased(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<float>& call,
                             float* parts, Stream stream);
/// Adds the parts up, in order. 0 for distances that the band does not see.
void softmax_bias_gradient(const SoftmaxSizes& sizes, const SoftmaxBias& bias, const float* parts,
                           float* to, Stream stream);

}  // namespace attnbench::kernels::cuda
