// Z_s = sum_{t>=s} (v_s . g_t) P_t of a block by products. The scan would keep a memory for it; but
// what the tokens after the block give is in sum P g^T already, which the scan for dLoss/dv keeps:
// v_s times its transpose. Inside the block values and upstream gradients meet by pairs. With C
// tokens in it that is L (D + C / 2) multiply-adds a token in place of 2 L D, and D C / 2 for the
// pairs, whatever L is.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/product/prefetch.hpp"
#include "attention/kernels/cpu/recurrent/panels.hpp"

namespace attnbench::kernels {

/// From one row of pairs to the next.
template <class R>
constexpr std::int64_t intra_block_stride(std::int64_t tokens) {
  return (tokens + panel_columns<R> - 1) / panel_columns<R> * panel_columns<R>;
}
/// Numbers for the pairs of a block.
template <class R>
constexpr std::int64_t intra_block_numbers(std::int64_t tokens) {
  return tokens * intra_block_stride<R>(tokens);
}
/// Numbers of the room that `intra_block_scores` and `read_intra_block_scores` work in.
template <class R>
constexpr std::int64_t intra_block_room(std::int64_t tokens, std::int64_t width,
                                        std::int64_t latents) {
  return width * std::max(intra_block_stride<R>(tokens), latents);
}

/// v_s . g_t at [s, t] of `intra_block` [tokens, intra_block_stride] for t >= s; what stands at t <
/// s is undefined. `width` is in whole panels.
template <class R, int Bytes>
void intra_block_scores(std::int64_t tokens, std::int64_t width, const Panels<const R>& v,
                        const Panels<const R>& g, R* room, R* intra_block);

/// Some latents of Z, in whole panels as the width is.
template <class R>
struct IntraBlockScores {
  std::int64_t tokens, latents, width;
  Panels<const R> v;     ///< [tokens, width]
  const R* intra_block;  ///< of all tokens of the block
  Panels<const R> p;     ///< [tokens, latents]
  const R* memory;       ///< [latents, width]: sum P g^T of the tokens after the block
  const R* decay;        ///< [latents]: what the block sees of it
  R* room;
  Panels<R> z;         ///< [tokens, latents]
  Prefetch* prefetch;  ///< what to fetch meanwhile
};

/// For float and double, vectors of 16, 32 and 64 bytes.
template <class R, int Bytes>
void read_intra_block_scores(const IntraBlockScores<R>& block);

}  // namespace attnbench::kernels
