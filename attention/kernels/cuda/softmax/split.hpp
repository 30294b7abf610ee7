// How the keys of few queries are dealt to many blocks (Dao et al. 2023, Flash-Decoding), so that
// one head alone fills the chip. Plain arithmetic, tested without a device.
#pragma once

#include <algorithm>
#include <cmath>

#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// Blocks of `rows` queries each, every one of them `parts` times, each time for a share of its
/// keys. The queries of all heads that share a key head count as one list, head after head.
struct SoftmaxSplit {
  int rows = 0;
  int parts = 1;

  std::int64_t row_blocks(const SoftmaxSizes& sizes) const {
    return (sizes.heads / sizes.kv_heads * sizes.length + rows - 1) / rows;
  }
  std::int64_t blocks(const SoftmaxSizes& sizes) const {
    return sizes.batch * sizes.kv_heads * row_blocks(sizes) * parts;
  }
};

/// What the parts leave: [parts, batch * heads * length, value_dim] outputs, each divided by its
/// own sum, and [parts, batch * heads * length] base-2 logarithms of the sums, -infinity for no
/// key.
struct SoftmaxPartial {
  float* out = nullptr;
  float* lse = nullptr;
};

/// How the warps of a block hold keys on their way: `warps` of them, each with `stages` tiles of 16
/// keys and values. Fewer stages where tiles are wide.
struct SplitTiles {
  static constexpr int warps = 4;
  static constexpr int keys = 16;

  static constexpr int stages(int width) { return width <= 128 ? 4 : 2; }
  static constexpr int tile_bytes(int width) { return keys * 2 * width; }
  static constexpr int warp_bytes(int width) { return stages(width) * 2 * tile_bytes(width); }
  /// With the queries, of which there are as many as keys in a tile.
  static constexpr int shared_bytes(int width) {
    return tile_bytes(width) + warps * warp_bytes(width);
  }
};

/// The most keys that one query sees.
inline std::int64_t seen_keys(const SoftmaxSizes& sizes) {
  const std::int64_t window =
      std::min(sizes.left, SoftmaxSizes::far) + std::min(sizes.right, SoftmaxSizes::far) + 1;
  return std::min(sizes.key_length, window);
}

/// As many parts as fill `multiprocessors` twice over, of at least `least_keys` keys each; one
/// where the tiles of queries alone fill them.
inline SoftmaxSplit split_keys(const SoftmaxSizes& sizes, int rows, int multiprocessors,
                               std::int64_t least_keys) {
  SoftmaxSplit split{rows, 1};
  const std::int64_t blocks = std::max<std::int64_t>(split.blocks(sizes), 1);
  const std::int64_t wanted = 2 * std::int64_t{multiprocessors} / blocks;
  const std::int64_t most = std::max<std::int64_t>(seen_keys(sizes) / least_keys, 1);
  split.parts = static_cast<int>(std::clamp<std::int64_t>(wanted, 1, most));
  return split;
}

/// Whether tiles of 16 queries with split keys are expected to end before tiles of 128 without. In
/// units of one query and key on one multiprocessor: a chip that the large tiles do not fill waits
/// for its slowest block, and small tiles read their keys from shared memory once for half as many
/// queries. A prediction with guessed constants; none of it has been measured on a GPU.
inline bool prefers_split(const SoftmaxSizes& sizes, int multiprocessors) {
  constexpr double launch = 15000;  // the second kernel, which puts the parts together
  const auto keys = static_cast<double>(seen_keys(sizes));
  const auto large = static_cast<double>(sizes.batch * sizes.heads * ((sizes.length + 127) / 128));
  const double waves = std::max(0.7, std::ceil(large / (2.0 * multiprocessors)));
  const SoftmaxSplit small{16, 1};
  const double work = 16 * static_cast<double>(small.blocks(sizes)) / (0.4 * multiprocessors);
  return work * keys + launch < 256 * waves * keys;
}

}  // namespace attnbench::kernels::cuda
