// Softmax on the CPU that sums the keys up by the same weights as the values, as a Perceiver's
// encoding pools both into its latents (Jaegle et al. 2021):
//   K~_l = sum_s w_{l,s} k_s,   V~_l = sum_s w_{l,s} v_s,   w_l = softmax_s(scale q_l . k_s).
// For float and double, for BFloat16 has tiles of its own in softmax.hpp. Forward alone.
#pragma once

#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels {

template <class T>
struct SoftmaxPoolArguments : SoftmaxArguments<T> {
  Rows<T> keys_out;  ///< [batch, heads, length, head_dim]
};

/// All queries see all keys that are real, and there is no bias.
template <class T>
std::size_t softmax_pool_bytes(const SoftmaxSizes& sizes, int threads);
template <class T>
void softmax_pool(const SoftmaxSizes& sizes, const SoftmaxPoolArguments<T>& arguments,
                  ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
