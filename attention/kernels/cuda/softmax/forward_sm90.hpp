// Softmax attention, forward, by what only Hopper has (wgmma, TMA): the inner door of
// softmax_sm90.cu. The public one chooses among this and the kernels that run everywhere.
#pragma once

#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// Why softmax_sm90_forward cannot do this on the present device; empty where it can. T is BFloat16
/// or Half. It does head_dim = value_dim = 64, 128 or 256, any lengths, heads, grouped heads and
/// windows; it refuses a key mask, rows that are not aligned to 16 bytes, and scales that are not
/// positive.
template <class T>
std::string softmax_sm90_refusal(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments);

/// Queues the forward pass: `out`, and `lse` if it is not null. Needs no workspace. Throws
/// std::logic_error with the refusal where there is one.
template <class T>
void softmax_sm90_forward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                          Stream stream);

}  // namespace attnbench::kernels::cuda
