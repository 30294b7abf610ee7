#include "attention/kernels/cuda/softmax/sm90_tiles.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "tests/attention/kernels/cuda/softmax_sizes.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("every tile has one turn, whoever many take turns") {
  for (const int workers : {1, 2, 7, 132}) {
    for (const int tiles : {1, 5, 131, 132, 133, 264, 1000}) {
      std::vector<int> taken(tiles, 0);
      for (int worker = 0; worker < workers; ++worker) {
        for (int n = 0;; ++n) {
          const std::int64_t index = SoftmaxTiles::turn(n, worker, workers);
          if (index >= tiles) break;
          ++taken[index];
        }
      }
      CHECK(taken == std::vector<int>(tiles, 1));
    }
  }
}

TEST_CASE(
    "tiles cover all queries, and their blocks all keys that these see and no block too many") {
  for (const auto& z :
       {sizes_of(2, 3, 1, 300, 300, 64), sizes_of(1, 2, 2, 513, 513, 64, far, 0),
        sizes_of(1, 1, 1, 100, 700, 64, far, 0, 600), sizes_of(1, 1, 1, 700, 100, 64, far, 0, -600),
        sizes_of(1, 1, 1, 700, 700, 64, 50, 20), sizes_of(1, 1, 1, 400, 60, 64, 5, 5),
        sizes_of(1, 1, 1, 300, 200, 64, -10, far), sizes_of(1, 1, 1, 300, 200, 64, far, -250)}) {
    INFO(name_of(z));
    const int queries = 128, keys = 80;
    const SoftmaxTiles tiles(z, queries, keys, 300000);
    std::vector<int> seen(static_cast<std::size_t>(z.batch * z.heads * z.length), 0);
    for (int i = 0; i < tiles.count(); ++i) {
      const SoftmaxTile tile = tiles.at(i);
      const KeyBlocks blocks = tiles.key_blocks(tile.query_block, queries, keys);
      const std::int64_t begin = std::int64_t{tile.query_block} * queries;
      std::int64_t least = z.key_length, most = -1;
      for (std::int64_t t = begin; t < std::min(begin + queries, z.length); ++t) {
        ++seen[(tile.batch * z.heads + tile.head) * z.length + t];
        CHECK(tiles.first_key(static_cast<int>(t)) == z.first_key(t));
        CHECK(tiles.last_key(static_cast<int>(t)) == z.last_key(t));
        if (z.first_key(t) > z.last_key(t)) continue;
        least = std::min(least, z.first_key(t));
        most = std::max(most, z.last_key(t));
      }
      if (most < 0) continue;
      CHECK(blocks.first == least / keys);
      CHECK(blocks.end == most / keys + 1);
    }
    CHECK(seen == std::vector<int>(seen.size(), 1));
  }
}

/// How many blocks of keys the tiles of a turn take, in the order of the turns.
std::vector<int> lengths_of(const SoftmaxTiles& tiles, int queries, int keys) {
  std::vector<int> lengths;
  for (int i = 0; i < tiles.count(); ++i) {
    lengths.push_back(tiles.key_blocks(tiles.at(i).query_block, queries, keys).count());
  }
  return lengths;
}

TEST_CASE("tiles that follow each other are alike in length, and the shortest come last") {
  for (const std::size_t l2_bytes : {std::size_t{1}, std::size_t{20} << 20, std::size_t{1} << 30}) {
    const SoftmaxTiles tiles(sizes_of(5, 15, 3, 1000, 1000, 64, far, 0), 128, 128, l2_bytes);
    const std::vector<int> lengths = lengths_of(tiles, 128, 128);
    for (std::size_t i = 1; i < lengths.size(); ++i) {
      CHECK(std::abs(lengths[i] - lengths[i - 1]) <= 1);
    }
    CHECK(lengths.back() == 1);
  }
}

TEST_CASE("tiles of one length follow each other head by head") {
  const SoftmaxTiles tiles(sizes_of(2, 3, 3, 1000, 1000, 64), 128, 128, 1 << 20);
  for (int i = 0; i < tiles.count(); ++i) {
    CHECK(tiles.at(i).batch * 3 + tiles.at(i).head == i / 8);
  }
}

TEST_CASE("causal tiles are shared out evenly at the lengths that are benchmarked") {
  for (const std::int64_t length : {1024, 2048, 4096, 8192, 16384}) {
    for (const std::int64_t width : {64, 128}) {
      const auto z =
          sizes_of(16384 / length, 2048 / width, 2048 / width, length, length, width, far, 0);
      const int queries = width == 64 ? 192 : 128;
      const SoftmaxTiles tiles(z, queries, 128, 50 << 20);
      const std::vector<int> lengths = lengths_of(tiles, queries, 128);
      constexpr int workers = 132;
      double most = 0, all = 0;
      for (int worker = 0; worker < workers; ++worker) {
        double load = 0;
        for (int n = 0;; ++n) {
          const auto index = static_cast<std::size_t>(SoftmaxTiles::turn(n, worker, workers));
          if (index >= lengths.size()) break;
          load += lengths[index] + 1.5;  // what a tile costs beside its blocks is a guess
        }
        most = std::max(most, load);
        all += load;
      }
      INFO("length " << length << " width " << width);
      CHECK(most <= 1.05 * all / workers);
    }
  }
}

}  // namespace attnbench::kernels::cuda::test
