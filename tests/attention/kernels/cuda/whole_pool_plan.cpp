#include "attention/kernels/cuda/pool/plan.hpp"

#include <set>

#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

constexpr std::size_t hopper = 227 << 10, ada = 99 << 10;  // shared memory of one block

TEST_CASE("cuda whole pool plan: segments cover the tokens, and none is empty") {
  for (const std::int64_t blocks : {0, 1, 7, 131, 132, 396, 5000}) {
    for (const std::int64_t tokens : {0, 1, 63, 64, 65, 1000, 65536, 1000000}) {
      for (const int chunk : {32, 64}) {
        CAPTURE(blocks, tokens, chunk);
        const TokenSegments cut = segments_of(tokens, chunk, blocks, 132);
        const std::int64_t each = std::int64_t{cut.chunks} * chunk;
        REQUIRE(cut.chunks >= 1);
        REQUIRE(cut.segments * each >= tokens);
        REQUIRE((cut.segments - 1) * each < std::max<std::int64_t>(tokens, 1));
        REQUIRE(cut.segments <= 3 * 132);
        if (blocks >= 3 * 132) REQUIRE(cut.segments == 1);
      }
    }
  }
}

TEST_CASE("cuda whole pool plan: all groups of latents have the same segments") {
  for (const std::int64_t dim : {8, 32, 33, 64, 100, 200}) {
    for (const std::int64_t heads : {1, 40, 200}) {
      std::set<int> segments, chunks;
      for (const std::int64_t width : {1, 31, 32, 60, 64, 65, 128}) {
        const RecurrentPlan plan = plan_states({heads, 10, 5000, 300, dim}, width, 132);
        REQUIRE(plan.latents >= width);
        REQUIRE(plan.latents <= pool_group);  // no tile that spills
        segments.insert(plan.segments);
        chunks.insert(plan.segment_chunks);
      }
      CHECK(segments.size() == 1);
      CHECK(chunks.size() == 1);
    }
  }
}

TEST_CASE(
    "cuda whole pool plan: what is read fits the card, and blocks cover queries and columns") {
  for (const std::int64_t latents : {1, 64, 100, 512, 1024}) {
    for (const std::int64_t dim : {1, 64, 65, 128, 300}) {
      for (const std::int64_t length : {1, 16, 1000, 100000}) {
        CAPTURE(latents, dim, length);
        const ReadPlan plan = plan_reading({3, length, 5, latents, dim}, 132, hopper);
        REQUIRE(plan.columns > 0);
        REQUIRE(read_bytes(latents, plan.columns) <= hopper);
        REQUIRE(plan.columns * plan.slices >= dim);
        REQUIRE(plan.columns * (plan.slices - 1) < dim);
        REQUIRE(plan.blocks >= 1);
        REQUIRE((plan.blocks - 1) * read_warps * 16 < length);
      }
    }
  }
  CHECK(plan_reading({1, 10, 10, 640, 128}, 132, ada).columns == 64);
  CHECK(plan_reading({1, 10, 10, 641, 128}, 132, ada).columns == 0);
  CHECK(plan_reading({1, 10, 10, 1600, 128}, 132, hopper).columns == 64);
  CHECK(plan_reading({1, 10, 10, 1601, 128}, 132, hopper).columns == 0);
  CHECK(plan_reading({1, 10, 10, 512, 128}, 132, hopper).columns == 128);
}

}  // namespace attnbench::kernels::cuda::test
