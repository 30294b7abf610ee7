#include "attention/kernels/cuda/softmax/split.hpp"

#include "attention/kernels/cuda/softmax/call.hpp"
#include "tests/attention/kernels/cuda/softmax_sizes.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("keys are split where few queries leave the chip idle, and nowhere else") {
  constexpr int chip = 132;
  const auto parts = [](const SoftmaxSizes& sizes) {
    return split_keys(sizes, 16, chip, 256).parts;
  };
  SoftmaxSizes sizes = sizes_of(1, 1, 1, 1, 1 << 17, 128, far, 0, (1 << 17) - 1);
  CHECK(prefers_split(sizes, chip));
  CHECK(parts(sizes) == 2 * chip);
  sizes.left = 1023;  // a window holds four parts' worth of keys
  CHECK(parts(sizes) == 4);
  sizes.left = SoftmaxSizes::far;
  sizes.batch = 2 * chip;  // enough tokens decoded at once
  CHECK(parts(sizes) == 1);
  CHECK(prefers_split(sizes, chip));  // still 16 queries to a tile
  sizes.batch = 1;
  sizes.heads = 32;  // of one key head: two blocks of queries
  CHECK(split_keys(sizes, 16, chip, 256).row_blocks(sizes) == 2);
  CHECK(parts(sizes) == chip);
  sizes = sizes_of(1, 16, 16, 4096, 4096, 128, far, 0);
  CHECK_FALSE(prefers_split(sizes, chip));
  sizes.key_length = 0;
  CHECK_FALSE(prefers_split(sizes, chip));
  CHECK(parts(sizes) == 1);
}

TEST_CASE("few queries go to the tiles of many where a card's blocks have too little memory") {
  Card card;
  card.multiprocessors = 132;
  const auto takes = [&](std::int64_t width, std::size_t kib) {
    card.shared_bytes = kib << 10;
    return takes_split(sizes_of(1, 1, 1, 1, 1 << 17, width, far, 0, (1 << 17) - 1), card);
  };
  for (const std::int64_t width : {64, 128, 256}) CHECK(takes(width, 163));
  CHECK(takes(64, 99));  // compute capability 8.6, 8.9 and 12
  CHECK_FALSE(takes(65, 99));
  CHECK_FALSE(takes(256, 99));
}

}  // namespace attnbench::kernels::cuda::test
