// Softmax attention on a CUDA device: the same sizes, arguments and gradients as the CPU's family
// (attention/kernels/softmax.hpp), with pointers to device memory and a stream in place of the
// team.
//
// - T is float (computed exactly in float, on the CUDA cores), BFloat16 or Half (products on the
//   tensor cores, sums in float; lse is float for all three).
// - Any head_dim and value_dim from 1 to 256. Rows that begin on 16 bytes and hold a multiple of 8
//   numbers are copied asynchronously; others work, slower.
// - Biases by distance are float32 numbers. In 16 bits they are for forward passes and at most 128
//   columns: softmax_biased_in_16_bits.
// - The workspace is device memory aligned to 64 bytes, not initialised. No function waits for the
//   device, so that calls can be captured in a graph.
// - The same bits every time on one kind of card.
// - A hidden key counts nothing as long as its numbers are finite: 0 times NaN is NaN.
// - Throws std::logic_error where softmax_refusal has a reason, where the workspace is too small,
//   where the card's blocks have too little shared memory (compute capability 8.6, 8.9 and 12 at
//   widths above 128, and above 64 for gradients), and Error where CUDA refuses a launch.
//
// Forward in 16 bits, few queries go to softmax_split_sm80.cu, what Hopper's own kernel can do to
// softmax_sm90.cu, the rest to softmax_forward_sm80.cu; all with biases to softmax_biased_sm80.cu.
// NOTES.md says what is known of their speed.
#pragma once

#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// Why no kernel here can do these sizes; empty where one can. Needs no device.
std::string softmax_refusal(const SoftmaxSizes& sizes);
/// Whether forward passes with biases can be done in bf16 and fp16 at these sizes. Their gradients
/// are those of float32 numbers: `out` widened, and `lse` as it was written.
bool softmax_biased_in_16_bits(const SoftmaxSizes& sizes);

/// Bytes for the current device: how far keys are split depends on its multiprocessors.
template <class T>
std::size_t softmax_forward_bytes(const SoftmaxSizes& sizes);
template <class T>
void softmax_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments, Stream stream,
                     void* workspace, std::size_t workspace_bytes);

/// Reads `out` and `lse` of the forward pass; gradients are written, not added to.
template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes);
template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, Stream stream, void* workspace,
                      std::size_t workspace_bytes);

}  // namespace attnbench::kernels::cuda
