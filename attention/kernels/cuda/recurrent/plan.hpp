// How the recurrent families are cut for a card: chunks, slices of the values, segments of the
// tokens. Plain functions of the sizes, so that they can be tested where there is no device.
#pragma once

#include <algorithm>
#include <cstdint>

namespace attnbench::kernels::cuda {

/// Tokens that a block of threads takes in at once.
constexpr int chunk_tokens = 64;
/// Up to so many segments each adds up the states of those before it for itself; with more, a
/// kernel of its own does it once.
constexpr int folded_segments = 8;

/// [heads, length, latents] against [heads, length, value_dim], batch rows counted as heads.
struct RecurrentShape {
  std::int64_t heads = 1, length = 0, latents = 0, value_dim = 0;
};

struct RecurrentPlan {
  /// Whether tokens are taken one by one on the CUDA cores: in fp32, and where no tile is wide
  /// enough.
  bool scan = false;
  int latents = 0;  ///< of a tile, padded
  int warps = 0;    ///< each holds 16 columns of the values
  int slices = 1;   ///< of the values, each of warps * 16 columns
  int segments = 1;
  int segment_chunks = 0;
  bool folded() const { return segments <= folded_segments; }
};

/// The widths that kernels are compiled for.
struct RecurrentTile {
  int latents, warps;
};
constexpr RecurrentTile recurrent_tiles[] = {{32, 2}, {64, 4}, {128, 4}, {256, 8}};
constexpr std::int64_t most_tile_latents = 256;
constexpr std::int64_t most_scan_latents = 512;

/// `exact`: on the CUDA cores. Depends on nothing but what is given, so that results are the same
/// bits each time.
inline RecurrentPlan plan_recurrence(const RecurrentShape& shape, int multiprocessors, bool exact) {
  RecurrentPlan plan;
  if (exact || shape.latents > most_tile_latents) {
    plan.scan = true;
    return plan;
  }
  for (const RecurrentTile& tile : recurrent_tiles) {
    plan.latents = tile.latents;
    plan.warps = tile.warps;
    // The narrowest tile takes narrow values only: cut into slices they would read all else twice.
    const bool wide_enough = tile.warps > 2 || shape.value_dim <= 32;
    if (shape.latents <= tile.latents && wide_enough) break;
  }
  const std::int64_t columns = 16 * plan.warps;
  plan.slices = static_cast<int>((shape.value_dim + columns - 1) / columns);
  const std::int64_t chunks =
      std::max<std::int64_t>(1, (shape.length + chunk_tokens - 1) / chunk_tokens);
  const std::int64_t blocks = std::max<std::int64_t>(1, shape.heads * plan.slices);
  std::int64_t segments = 1;
  // Two passes read keys and values twice: worth it only where heads leave processors idle.
  if (blocks < multiprocessors) {
    segments = std::min((3 * multiprocessors + blocks - 1) / blocks,
                        std::max<std::int64_t>(1, chunks / 2));
  }
  plan.segment_chunks = static_cast<int>((chunks + segments - 1) / segments);
  plan.segments = static_cast<int>((chunks + plan.segment_chunks - 1) / plan.segment_chunks);
  return plan;
}

}  // namespace attnbench::kernels::cuda
