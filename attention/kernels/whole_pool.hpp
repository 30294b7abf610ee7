// The pool of prefix_pool.hpp without an order, on the CPU: every query reads the averages over all
// tokens, as bidirectional and cross Latte, Macchiato and exact Performer do.
//
//   y_t = sum_l p_{t,l} M_l,   M_l = sum_s exp(k_{s,l} - z_l) v_s,   z_l = logsumexp_s k_{s,l}.
#pragma once

#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels {

/// Logits that are made of tokens x as they are needed, so that they never lie in memory: scale
/// x . w_l with a direction w_l for each latent, of scores less |scale x|^2 / 2 where `half_square`
/// (Choromanski et al. 2021, lemma 1).
struct PoolDirections {
  std::int64_t dim = 0;  ///< of a token and of a direction; 0 = query and scores are the logits
  bool half_square = false;
};

/// Scores and values have `key_length` tokens, and so has the mask; queries and results `length`.
struct WholePoolSizes : PrefixPoolSizes {
  std::int64_t key_length = 0;
  PoolDirections directions;
};

/// With directions, query and scores are rows of `directions.dim` numbers, and the query's kind is
/// not `weights`.
template <class T>
struct WholePoolArguments : PrefixPoolArguments<T> {
  Rows<const Compute<T>> directions;  ///< [1, heads, latents, directions.dim]
};

/// No carry is taken into account. A latent to which every token is hidden weighs nothing.
template <class T>
std::size_t whole_pool_forward_bytes(const WholePoolSizes& sizes, int threads);
template <class T>
void whole_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        ThreadTeam& team, void* workspace, std::size_t workspace_bytes);

/// The same for logits that are given: there are no directions.
template <class T>
std::size_t whole_pool_backward_bytes(const WholePoolSizes& sizes, int threads);
template <class T>
void whole_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, ThreadTeam& team, void* workspace,
                         std::size_t workspace_bytes);

}  // namespace attnbench::kernels
