// Tensors of tokens [B, H, T, w]: their computing dtype, padding, rotary positions, and processing
// in parts, so that workspace does not grow with the sequence.
//
// Whole tensors may have any strides. A part is a dense copy with batches and heads as one
// dimension, N = B H.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "attention/torch/torch.hpp"

namespace attnbench {

/// The dtype of sums over many tokens: float32 for 16-bit types, else `type`.
at::ScalarType compute_type(at::ScalarType type);
at::TensorOptions compute_type(const at::TensorOptions& options);

/// Whether gradients are recorded for any of these tensors; undefined ones are ignored.
bool gradient_wanted(const std::vector<at::Tensor>& tensors);

/// The mask of padding [B, 1, T, 1], true there, for a mask [B, T] that is true at real tokens;
/// undefined without a mask.
at::Tensor padded_tokens(const at::Tensor& key_mask);
/// x [B, H, T, w] with `value` at padding; x itself without a mask. Padding may hold anything, NaN
/// included, so that it is replaced, not multiplied by 0.
at::Tensor without_padding(const at::Tensor& x, const at::Tensor& key_mask, double value = 0);

/// x [B, H, T, w] as [B, G, H / G T, w], the query heads of each of G = `kv_heads` key heads one
/// after the other: a product with keys or values then needs no copies of them. And back.
at::Tensor folded_heads(const at::Tensor& x, std::int64_t kv_heads);
at::Tensor unfolded_heads(const at::Tensor& x, std::int64_t heads);
/// Keys or values x [B, G, T, w] once for each of `heads` query heads, [B, H, T, w]; without a copy
/// where G is 1 or H.
at::Tensor repeated_heads(const at::Tensor& x, std::int64_t heads);

enum class Rotation { forward, inverse };

/// Cosines and sines [T, pairs] of the angles (first + t) base^(-i / pairs) of rotary positions, in
/// a computing dtype. Calls share tables: they are not to be written to.
struct RotaryTable {
  at::Tensor cosine, sine;
};

/// The table by which `rotated` turns x [B, H, T, w] from position `first` on. Angles are computed
/// in double. On the CPU the last few tables are kept for further calls, from any thread: 2^20
/// numbers at most, for they take about as long as a fast mix.
RotaryTable rotary_table(const at::Tensor& x, std::int64_t first, double base);

/// Rotary positions, Su et al. 2021 (RoFormer, arXiv:2104.09864), section 3.2: x [B, H, T, w] with
/// the channel pair (2i, 2i + 1) of token t rotated by the angle (first + t) base^(-2i / w'), w'
/// the largest even number in w; the last channel of an odd width is unchanged. `back` undoes
/// `forward`. Products are computed in float32 at least; the result has the dtype of x.
at::Tensor rotated(const at::Tensor& x, const RotaryTable& table, Rotation rotation);
at::Tensor rotated(const at::Tensor& x, std::int64_t first, double base, Rotation rotation);

/// Tokens [begin, begin + count * size): `count` chunks of `size` tokens.
struct Piece {
  std::int64_t begin, count, size;
  std::int64_t tokens() const { return count * size; }
  /// The piece's tokens, counted from the piece's first.
  Piece alone() const { return {0, count, size}; }
};

/// Chunks per piece in the chunked forms: enough for batched products, few enough to stay in the
/// cache. 4 to 16 were measured equally fast.
inline constexpr std::int64_t kChunksInPiece = 4;
/// A block shorter than this that continues from a state is computed token by token: the products
/// of a chunk do not pay off.
inline constexpr std::int64_t kShortStep = 8;

/// Chunks of `size` tokens, at most `most` per piece, and a shorter last one if need be.
std::vector<Piece> pieces_of(std::int64_t length, std::int64_t size, std::int64_t most);

/// The tokens of a piece, [N, tokens, w] in `type`; and back into their place.
at::Tensor part_of(const at::Tensor& whole, const Piece& piece, at::ScalarType type);
void put_part(const at::Tensor& whole, const Piece& piece, const at::Tensor& part);

/// `count` tokens from `begin`, time first, so that one token is contiguous: [count, N, w] in
/// `type`; and back into their place.
at::Tensor rows_of(const at::Tensor& whole, std::int64_t begin, std::int64_t count,
                   at::ScalarType type);
void put_rows(const at::Tensor& whole, std::int64_t begin, const at::Tensor& rows);

/// x [N, T, w] as blocks [N, n, size, w] of `size` tokens, the last one padded with `filling`.
at::Tensor in_blocks(const at::Tensor& x, std::int64_t size, double filling);

/// Replaces each [N, i, ...] by the state before it, past_{i+1} = past_i decay_i + each_i, in order
/// or reversed, and returns the final state. An undefined `decay` is 1.
at::Tensor carry_over(at::Tensor each, const at::Tensor& decay, at::Tensor past, bool reversed);

/// Growth::from_length of forms that process tokens in blocks of tokens_together: up to half of it
/// the blocks grow.
inline constexpr std::int64_t kGrowingTogether = 2048;

/// Tokens per block where the rows of a kernel are computed first: rows of all heads that fit into
/// a second-level cache, in multiples of the kernels' 64.
inline std::int64_t tokens_together(std::int64_t heads, std::int64_t rows, std::int64_t bytes) {
  constexpr std::int64_t cached = std::int64_t{4} << 20;
  return std::clamp<std::int64_t>(cached / (heads * rows * bytes) / 64 * 64, 64,
                                  kGrowingTogether / 2);
}

}  // namespace attnbench
