// CP, the causal product, on CUDA; see attention/kernels/causal_product.hpp for what it is. The
// pointers of the arguments, mask, memory and total included, are the device's.
//
// Everything is computed token by token in fp32 on the CUDA cores, exact but for rounding; but
// 16-bit numbers of at most 128 features are taken by chunks on the tensor cores, to 16 bits. A
// decay is for fp32 alone (std::logic_error).
#pragma once

#include <cstddef>
#include <string>

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cuda/device.hpp"

namespace attnbench::kernels::cuda {

/// Why these sizes cannot be done (more than 512 features); empty where they can.
std::string causal_product_refusal(const CausalProductSizes& sizes);

/// Bytes of the workspace, which is aligned to 64 bytes at least and grows with batch * heads *
/// length * features. Throws std::logic_error for sizes that are refused.
template <class T>
std::size_t causal_product_forward_bytes(const CausalProductSizes& sizes);
/// Queued on the stream; the same bits each time. Throws std::logic_error for sizes that are
/// refused or too small a workspace, Error where CUDA fails.
template <class T>
void causal_product_forward(const CausalProductSizes& sizes,
                            const CausalProductArguments<T>& arguments, Stream stream,
                            void* workspace, std::size_t workspace_bytes);

/// Gradients need no more than 512 columns of values; at most 128 for all of it on the tensor
/// cores.
std::string causal_product_backward_refusal(const CausalProductSizes& sizes);
template <class T>
std::size_t causal_product_backward_bytes(const CausalProductSizes& sizes);
/// `out`, memory and total are not looked at. Throws as the forward pass does.
template <class T>
void causal_product_backward(const CausalProductSizes& sizes,
                             const CausalProductArguments<T>& arguments,
                             const CausalProductGradients<T>& gradients, Stream stream,
                             void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels::cuda
