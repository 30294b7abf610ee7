// Attention over blocks of keys that each query chooses by their content: what is chosen, and the
// mix (Lu et al. 2025, MoBA; Yuan et al. 2025, NSA).
//
// Token s is in block s / size; the last block may be partial. A query sees its own block, which is
// the one of its own token, causally, and all of the blocks that it chose, which end before its own
// begins.
#pragma once

#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// Sums over the real tokens of each block, and how many they are, in double.
struct BlockSums {
  at::Tensor sum;     ///< [B, G, N, w]
  at::Tensor tokens;  ///< [B, N]
  /// sum / tokens, and 0 for a block without real tokens.
  at::Tensor mean() const;
};

/// The sums of x [B, G, S, w], whose first token is `lead` tokens after the beginning of a block.
/// With gradients. key_mask as in SoftmaxCall.
BlockSums block_sums(const at::Tensor& x, const at::Tensor& key_mask, std::int64_t size,
                     std::int64_t lead = 0);
/// Adds the sums of new tokens to those of all, in place: they begin in block `first`.
void add_block_sums(const BlockSums& all, const BlockSums& fresh, std::int64_t first);
/// Blocks that hold `tokens` tokens.
std::int64_t blocks_of(std::int64_t tokens, std::int64_t size);

/// The places of the `count` greatest `scores` [..., N] (double) that are not `hidden`, the
/// greatest first: [..., min(count, N)], -1 where there are fewer. Scores are compared in float32,
/// and of equal ones the first in the row goes first. Thus what differs by the rounding of sums in
/// double alone is equal, and all forms, devices and the definition choose alike.
at::Tensor greatest_places(const at::Tensor& scores, const at::Tensor& hidden, std::int64_t count);

/// MoBA's choice: of the blocks that end before the query's own begins and hold a real token, the
/// `count` with the greatest q . mean(k). [B, H, T, n] with n <= count; without gradient.
at::Tensor blocks_by_mean(const SoftmaxCall& call, const BlockSums& keys, std::int64_t size,
                          std::int64_t count);

/// NSA's attention over means, and its choice.
struct CompressedBlocks {
  at::Tensor output;  ///< [B, H, T, Dv], float32 at least
  at::Tensor chosen;  ///< [B, H, T, n] with n <= count, as blocks_by_mean's
};

/// softmax(scale q . mean(k)) mean(v) over the blocks whose last token is the query's or before it,
/// 0 where there is none, with weights in double; and of the blocks that end before the query's own
/// begins and hold a real token the first, the last and those with the greatest weights, summed
/// over the heads that share a key head: `count` of them, 2 or more.
CompressedBlocks compressed_blocks(const SoftmaxCall& call, const BlockSums& keys,
                                   const BlockSums& values, std::int64_t size, std::int64_t count);

/// [B, H, T, S], true at the keys of all blocks but the query's own and the `chosen` ones
/// [B, H, T, n], whose numbers are distinct, or -1 where there is none: SoftmaxCall::unseen.
at::Tensor unchosen_keys(const SoftmaxCall& call, std::int64_t size, const at::Tensor& chosen);

/// The mix over the query's own and the `chosen` blocks, without a mask over T x S: for each block
/// the queries that see it are gathered, and their partial sums are combined. The call's `offset`
/// is S - T; band, decays and `unseen` are not read. The backward pass recomputes the weights. A
/// single query gathers the keys of its blocks instead.
at::Tensor gathered_blocks(const SoftmaxCall& call, std::int64_t size, const at::Tensor& chosen);

/// Pairs of a query and a key that it sees, per batch and head, with `count` blocks chosen where
/// there are so many.
double chosen_pairs(std::int64_t length, std::int64_t size, std::int64_t count);
/// Pairs of a query and the mean of a block before its own.
double scored_means(std::int64_t length, std::int64_t size);
/// What gathered_blocks executes, and its bytes where queries choose among the blocks before their
/// own with equal chances. The rest is left at 0.
Cost gathered_cost(const Problem& problem, std::int64_t size, std::int64_t count);
/// Scores that a choice has in memory at once.
inline constexpr std::int64_t kScoresTogether = std::int64_t{1} << 17;
/// The workspace of blocks_by_mean and of the sums, with the choice itself.
double choice_bytes(const Problem& problem, std::int64_t size, std::int64_t count);

}  // namespace attnbench
