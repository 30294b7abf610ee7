// Which tiles there are, which keys each needs and who computes it when: the plain arithmetic of
// the Hopper softmax kernel, the same on the CPU, where it is tested.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels::cuda {

/// One tile: so many queries of one head, from query_block * (queries of a tile) on.
struct SoftmaxTile {
  int query_block = 0;
  int head = 0;
  int batch = 0;
};

/// Blocks of keys from `first` up to, but not with, `end`.
struct KeyBlocks {
  int first = 0;
  int end = 0;
  constexpr int count() const { return end - first; }
};

struct SoftmaxTiles {
  static constexpr int limit = 1 << 29;  ///< lengths are at most this

  int length = 0;
  int key_length = 0;
  int heads = 1;
  int batch = 1;
  int low = 0;  ///< query t sees keys t + low to t + high
  int high = 0;
  int query_blocks = 0;
  /// Tiles are taken section by section, so many heads each. Where tiles differ in length, a
  /// section is heads whose keys and values fit into half of the L2 cache together, and its tiles
  /// go by length, down in one section, up in the one before, and down in the last: so that what
  /// workers compute side by side is alike, and the shortest comes last. Else a section is one
  /// head.
  int section = 1;
  bool last_is_longest = false;

  constexpr SoftmaxTiles() = default;
  constexpr SoftmaxTiles(const SoftmaxSizes& sizes, int queries, int keys, std::size_t l2_bytes)
      : length(static_cast<int>(sizes.length)),
        key_length(static_cast<int>(sizes.key_length)),
        heads(static_cast<int>(sizes.heads)),
        batch(static_cast<int>(sizes.batch)),
        low(clamp(sizes.offset - sizes.left)),
        high(clamp(sizes.offset + sizes.right)),
        query_blocks((length + queries - 1) / queries) {
    if (query_blocks == 0) return;
    const int first = key_blocks(0, queries, keys).count();
    const int last = key_blocks(query_blocks - 1, queries, keys).count();
    if (first == last) return;
    last_is_longest = last > first;
    // Fewer than 16 heads side by side would be a poor mixture, and need not be: with 16, eight
    // workers or so read the same keys at about the same time.
    constexpr std::int64_t least = 16;
    const std::int64_t head_bytes = 2 * sizes.key_length * (sizes.head_dim + sizes.value_dim);
    const std::int64_t fitting =
        static_cast<std::int64_t>(l2_bytes / 2) / head_bytes * (sizes.heads / sizes.kv_heads);
    const std::int64_t all = sizes.heads * sizes.batch;
    const std::int64_t most = std::min(all, std::max(least, fitting));
    const std::int64_t sections = (all + most - 1) / most;
    section = static_cast<int>((all + sections - 1) / sections);
  }

  constexpr int count() const { return query_blocks * heads * batch; }

  constexpr SoftmaxTile at(int index) const {
    const int which = index / (section * query_blocks);
    const int before = which * section;  // heads
    const int left = heads * batch - before;
    const int size = left < section ? left : section;
    const int place = index - before * query_blocks;
    const int rank = place / size;
    const int row = before + place - rank * size;
    const int sections_after = (left - 1) / section;
    const bool down = sections_after % 2 == 0;
    SoftmaxTile tile;
    tile.query_block = down == last_is_longest ? query_blocks - 1 - rank : rank;
    tile.batch = row / heads;
    tile.head = row - tile.batch * heads;
    return tile;
  }

  /// The tile that worker w of W computes as its n-th. Forth and back through the workers, so that
  /// who had the longest of one round has the shortest of the next.
  static constexpr std::int64_t turn(int n, int worker, int workers) {
    return std::int64_t{n} * workers + (n % 2 == 0 ? worker : workers - 1 - worker);
  }

  constexpr int first_key(int t) const { return t + low > 0 ? t + low : 0; }
  constexpr int last_key(int t) const {
    return t + high < key_length - 1 ? t + high : key_length - 1;
  }

  /// All blocks of `keys` keys of which the tile's queries may see one; none where they see none.
  constexpr KeyBlocks key_blocks(int query_block, int queries, int keys) const {
    const int begin = query_block * queries;
    const int end = begin + queries < length ? begin + queries : length;
    const int first = first_key(begin);
    const int last = last_key(end - 1);
    if (last < first) return {};
    return {first / keys, last / keys + 1};
  }

 private:
  static constexpr int clamp(std::int64_t x) {
    constexpr std::int64_t most = std::int64_t{1} << 30;
    return static_cast<int>(x < -most ? -most : x > most ? most : x);
  }
};

}  // namespace attnbench::kernels::cuda
