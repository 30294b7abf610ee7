// Softmax attention on a CUDA device: the same sizes, arguments and gradients as the CPU's family
// (attention/kernels/softmax.hpp), with pointers to device memory and a stream in place of the
// team.
//
// - Two versions of each pass: plain.cu, a warp a row, in float for every type; and for BFloat16
// and
//   Half forward_mma.cu and backward_mma.cu, in tiles on the tensor cores, sums in float. The
//   latter are taken where rows allow it (shape.hpp). lse is float for all types.
// - Any head_dim and value_dim from 1 to 256. There are no biases by distance.
// - The workspace is device memory aligned to 64 bytes, not initialised. No function waits for the
//   device, so that calls can be captured in a graph.
// - The same bits every time on one kind of card.
// - A hidden key counts nothing as long as its numbers are finite: 0 times NaN is NaN.
// - Throws std::logic_error where softmax_refusal has a reason or the workspace is too small, and
//   Error where CUDA refuses a launch.
#pragma once

#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// Why no kernel here can do these sizes; empty where one can. Needs no device.
std::string softmax_refusal(const SoftmaxSizes& sizes);

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
