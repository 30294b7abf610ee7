// PP, the causal prefix pool, on CUDA; see attention/kernels/prefix_pool.hpp for what it is. The
// pointers of the arguments, mask and carry included, are the device's.
//
// Everything is computed token by token in fp32 on the CUDA cores, exact but for rounding; but
// 16-bit numbers of at most 128 latents are taken by chunks on the tensor cores, to 16 bits. A
// chunk in which a latent's maximum rises by more than 2^60 is cut, so that any finite scores give
// the right answer.
#pragma once

#include <cstddef>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels::cuda {

/// Why these sizes cannot be done (more than 512 latents); empty where they can.
std::string prefix_pool_refusal(const PrefixPoolSizes& sizes);

/// Bytes of the workspace, which is aligned to 64 bytes at least and grows with batch * heads *
/// length * latents. Throws std::logic_error for sizes that are refused.
template <class T>
std::size_t prefix_pool_forward_bytes(const PrefixPoolSizes& sizes);
/// Queued on the stream; the same bits each time. Throws std::logic_error for sizes that are
/// refused or too small a workspace, Error where CUDA fails.
template <class T>
void prefix_pool_forward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         Stream stream, void* workspace, std::size_t workspace_bytes);

/// Gradients need no more than 512 columns of values; at most 128 for all of it on the tensor
/// cores. Where one token outweighs all others, its score's gradient is a small difference of large
/// numbers, and no more exact than these.
std::string prefix_pool_backward_refusal(const PrefixPoolSizes& sizes);
template <class T>
std::size_t prefix_pool_backward_bytes(const PrefixPoolSizes& sizes);
/// `out` and the carry are not looked at. Throws as the forward pass does.
template <class T>
void prefix_pool_backward(const PrefixPoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                          const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                          std::size_t workspace_bytes);

}  // namespace attnbench::kernels::cuda
