// The pool without an order on CUDA; see attention/kernels/whole_pool.hpp for what it is. The
// pointers of the arguments, mask included, are the device's.
//
// Two passes: the averages of every latent, by segments of the tokens, and the queries' reading of
// them. bf16 and fp16 numbers are multiplied on the tensor cores and added up in fp32. fp32 ones
// are exact but for rounding, on the CUDA cores; so are all where logits are given and a block of
// the card cannot hold the averages (more than 1600 latents on Hopper, 1088 on an A100, 640 on
// compute capability 8.6 and 8.9). Any finite scores give the right answer.
//
// Logits of bf16 and fp16 tokens are made in the kernels where there are directions, which count as
// the sums of two such numbers, 16 or 22 bits of theirs; those of fp32 tokens are to be made
// beforehand.
#pragma once

#include <cstddef>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/whole_pool.hpp"

namespace attnbench::kernels::cuda {

/// Why these sizes cannot be done (more than 4096 latents, directions of more than 128 numbers);
/// empty where they can. Needs no device.
std::string whole_pool_refusal(const WholePoolSizes& sizes);

/// Of the current device's workspace, which is aligned to 64 bytes at least. Throws
/// std::logic_error for sizes that are refused, and for directions where T is float.
template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes);
/// Queued on the stream; the same bits each time. Throws std::logic_error for sizes that are
/// refused or too small a workspace, Error where CUDA fails.
template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        Stream stream, void* workspace, std::size_t workspace_bytes);

/// Of logits that are given: there are no directions. In bf16 and fp16 and up to 128 columns of
/// values products are the tensor cores'; else gradients are computed in fp32 on the CUDA cores,
/// with a workspace that grows with batch * heads * length * value_dim. `out` is not looked at.
template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes);
template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                         std::size_t workspace_bytes);

}  // namespace attnbench::kernels::cuda
