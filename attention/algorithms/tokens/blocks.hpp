// Going through a long sequence a part at a time, so that workspace does not grow with it.
//
// Whole tensors are [B, H, T, w], of any strides; a part is a dense copy with batches and heads as
// one dimension, N = B H.
#pragma once

#include <cstdint>
#include <vector>

#include "attention/torch/torch.hpp"

namespace attnbench {

/// float32 for 16-bit types, else `type` itself: what sums over many tokens are kept in.
at::ScalarType compute_type(at::ScalarType type);

/// Whether gradients are recorded now for any of these, undefined ones aside.
bool gradient_wanted(const std::vector<at::Tensor>& tensors);

/// Tokens [begin, begin + count * size): `count` chunks of `size` tokens.
struct Piece {
  std::int64_t begin, count, size;
  std::int64_t tokens() const { return count * size; }
  /// The same tokens, counted from the piece's first.
  Piece alone() const { return {0, count, size}; }
};

/// Chunks that chunked forms take together: enough for products side by side to pay, few enough
/// that workspace stops growing early and stays in the cache. 4 to 16 were measured equally fast.
inline constexpr std::int64_t kChunksInPiece = 4;

/// Chunks of `size` tokens, at most `most` to a piece, and a shorter one at the end where need be.
std::vector<Piece> pieces_of(std::int64_t length, std::int64_t size, std::int64_t most);

/// The tokens of a piece, [N, tokens, w] in `type`; and back into their place.
at::Tensor part_of(const at::Tensor& whole, const Piece& piece, at::ScalarType type);
void put_part(const at::Tensor& whole, const Piece& piece, const at::Tensor& part);

/// `count` tokens from `begin`, time first, so that one token is contiguous: [count, N, w] in
/// `type`; and back into their place.
at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t count,
                   at::ScalarType type);
void put_rows(const at::Tensor& whole, std::int64_t begin, const at::Tensor& rows);

/// x [N, T, w] as blocks [N, n, size, w] of `size` tokens, the last filled up with `filling`.
at::Tensor in_blocks(const at::Tensor& x, std::int64_t size, double filling);

/// Replaces each [N, i, ...] by what comes before it, past_{i+1} = past_i fade_i + each_i, in order
/// or from the last to the first, and returns the final past. An undefined `fade` is 1.
at::Tensor carry_over(at::Tensor each, const at::Tensor& fade, at::Tensor past, bool reversed);

}  // namespace attnbench
