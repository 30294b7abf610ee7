// How the running memory's tokens are cut: by windows, into segments that blocks of threads take.
// Plain functions of the sizes, so that they can be tested where there is no device.
#pragma once

#include <algorithm>
#include <cstdint>

#include "attention/kernels/lavo.hpp"

namespace attnbench::kernels::cuda {

constexpr int memory_threads = 128;
/// Bases that lie in shared memory at once.
constexpr int memory_chunk = 64;
constexpr int most_memory_bases = 256, most_memory_dim = 256;

/// Where windows of tokens end: behind the first `first`, and behind every `every` more. Tokens are
/// remembered when their window has ended; a mean for each token is windows of one.
struct MemoryWindows {
  int first = 1, every = 1;

  /// Of the window of token t; 0 for all that began before this call's tokens.
  constexpr int begin(int t) const { return t < first ? 0 : first + (t - first) / every * every; }
  constexpr int end(int t) const { return t < first ? first : begin(t) + every; }
  /// Whether one ends before token t.
  constexpr bool ends(int t) const { return t >= first && (t - first) % every == 0; }
};

inline MemoryWindows memory_windows(const LavoSizes& sizes) {
  constexpr int never = 1 << 30;
  if (sizes.order == MemoryOrder::all) return {never, never};
  if (sizes.order == MemoryOrder::each_token) return {1, 1};
  const std::int64_t most = sizes.length + 1;  // past the last token one end is as good as another
  return {static_cast<int>(std::min(most, sizes.window - sizes.phase % sizes.window)),
          static_cast<int>(std::min(most, sizes.window))};
}

/// Tokens in units, each cut into `parts`: whole windows, or parts of one. Part k of unit i is
/// segment i * parts + k. All of a unit's tokens have the same tokens before it.
struct MemorySegments {
  int tokens = 0;
  int first = 0;  ///< tokens of the first unit
  int unit = 0;   ///< of every other
  int parts = 1;
  int part = 0;  ///< tokens of a part, a whole number of tiles where there are several
  int count = 1;

  constexpr int unit_begin(int i) const { return i == 0 ? 0 : first + (i - 1) * unit; }
  constexpr int begin(int k) const {
    const int at = unit_begin(k / parts) + k % parts * part;
    return at < limit(k) ? at : limit(k);
  }
  constexpr int end(int k) const {
    const int at = begin(k) + (parts == 1 ? tokens : part);
    return at < limit(k) ? at : limit(k);
  }
  /// The first segment of the same unit: what comes before it came before the unit.
  constexpr int first_of_unit(int k) const { return k / parts * parts; }

 private:
  constexpr int limit(int k) const {
    const int end = unit_begin(k / parts + 1);
    return end < tokens ? end : tokens;
  }
};

/// About `most` segments, fewer where they would be shorter than two tiles of `tile` tokens.
inline MemorySegments memory_segments(int tokens, const MemoryWindows& windows, bool cut_at_windows,
                                      int tile, std::int64_t most) {
  const auto over = [](int n, int d) { return (n + d - 1) / d; };
  const auto whole = [&](int n) { return over(n, tile) * tile; };
  const int share = std::max(2 * tile, whole(over(tokens, static_cast<int>(most))));
  MemorySegments cut;
  cut.tokens = tokens;
  if (most == 1 || share >= tokens) {
    cut.first = cut.unit = std::max(1, tokens);
  } else if (!cut_at_windows) {
    cut.first = cut.unit = share;
  } else if (share >= windows.every) {
    const int together = share / windows.every - 1;
    cut.first = windows.first + together * windows.every;
    cut.unit = windows.every + together * windows.every;
  } else {
    cut.first = windows.first;
    cut.unit = windows.every;
    cut.parts = over(windows.every, share);
    cut.part = whole(over(windows.every, cut.parts));
    cut.parts = over(windows.every, cut.part);
  }
  const int units = tokens <= cut.first ? 1 : 1 + over(tokens - cut.first, cut.unit);
  cut.count = units * cut.parts;
  return cut;
}

/// Of a tile on the tensor cores.
constexpr int memory_tensor_tokens = 64;

struct MemoryPlan {
  /// On the tensor cores: room for bases, and for numbers of a row; 0: on the CUDA cores.
  int tensor_width = 0;
  int tile = 32;           ///< tokens that a block computes at once
  bool each_mean = false;  ///< whether tokens of a tile may read different means
  MemoryWindows windows;
  MemorySegments reading, summing;
};

/// The columns of the tiles that the tensor cores take; 0 for what is wide or cut into short
/// windows.
inline int memory_tensor_width(const LavoSizes& sizes) {
  const std::int64_t widest = std::max(sizes.bases, sizes.head_dim);
  const bool short_windows =
      sizes.order == MemoryOrder::windows && memory_windows(sizes).every < memory_tensor_tokens;
  return widest > 128 || short_windows ? 0 : widest <= 64 ? 64 : 128;
}

/// `busy`: blocks that fill the card. `always`: tokens are cut even where there are as many heads.
/// On the CUDA cores tiles have `tile` tokens, and `tensor_width` is 0.
inline MemoryPlan plan_memory(const LavoSizes& sizes, std::int64_t busy, bool always,
                              int tensor_width, int tile) {
  MemoryPlan plan;
  plan.windows = memory_windows(sizes);
  plan.tensor_width = tensor_width;
  plan.tile = tensor_width > 0 ? memory_tensor_tokens : tile;
  plan.each_mean = plan.windows.every < plan.tile;
  const std::int64_t heads = std::max<std::int64_t>(1, sizes.batch * sizes.heads);
  // Tokens that are cut are read twice where queries read those before them: worth it only where
  // heads leave processors idle.
  const bool free = always || sizes.order == MemoryOrder::all;
  const std::int64_t most = !free && 2 * heads >= busy ? 1 : (busy + heads - 1) / heads;
  plan.reading = memory_segments(static_cast<int>(sizes.length), plan.windows,
                                 sizes.order == MemoryOrder::windows, plan.tile, most);
  plan.summing = plan.reading;
  if (sizes.order == MemoryOrder::all) {
    plan.summing = memory_segments(static_cast<int>(sizes.memory_length), plan.windows, false,
                                   plan.tile, most);
  }
  return plan;
}

}  // namespace attnbench::kernels::cuda
