// The pool of prefix_pool.hpp without an order, on the CPU: every query reads the averages over all
// tokens, as bidirectional and cross Latte, Macchiato and exact Performer do.
//
//   y_t = sum_l p_{t,l} M_l,   M_l = sum_s exp(k_{s,l} - z_l) v_s,   z_l = logsumexp_s k_{s,l}.
#pragma once

#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels {

/// Scores and values have `key_length` tokens, and so has the mask; queries and results `length`.
struct WholePoolSizes : PrefixPoolSizes {
  std::int64_t key_length = 0;
};

/// No carry is taken into account. A latent to which every token is hidden weighs nothing.
template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes, int threads);
template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                        ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes, int threads);
template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const PrefixPoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, ThreadTeam& team, void* workspace,
                         std::size_t workspace_bytes);

}  // namespace attnbench::kernels
