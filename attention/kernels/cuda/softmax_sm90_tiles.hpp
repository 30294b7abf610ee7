// Which tiles there are, which keys each needs and who computes it when: the plain arithmetic of
// the Hopper softmax kernel, the same on the CPU, where it is tested.
#pragma once

#include <algorithm>
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
  /// Whether tiles of one head follow each other (its keys stay in the L2 cache), or those of one
  /// query block, the longest first.
  bool by_length = false;
  bool last_is_longest = false;

  constexpr SoftmaxTiles() = default;
  constexpr SoftmaxTiles(const SoftmaxSizes& sizes, int queries, int keys)
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
    by_length = first != last;
    last_is_longest = last > first;
  }

  constexpr int count() const { return query_blocks * heads * batch; }

  constexpr SoftmaxTile at(int index) const {
    SoftmaxTile tile;
    int row;
    if (by_length) {
      const int rank = index / (heads * batch);
      row = index - rank * heads * batch;
      tile.query_block = last_is_longest ? query_blocks - 1 - rank : rank;
    } else {
      row = index / query_blocks;
      tile.query_block = index - row * query_blocks;
    }
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
