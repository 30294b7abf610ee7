#include "attention/kernels/cuda/softmax/shape.hpp"

#include <vector>

#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("the band of a CUDA kernel agrees with the sizes, key by key") {
  for (const std::int64_t left : {std::int64_t{0}, std::int64_t{3}, SoftmaxSizes::far}) {
    for (const std::int64_t right : {std::int64_t{0}, std::int64_t{2}, SoftmaxSizes::far}) {
      for (const std::int64_t offset : {-50, -3, 0, 4, 50}) {
        SoftmaxSizes sizes;
        sizes.length = 13;
        sizes.key_length = 17;
        sizes.left = left;
        sizes.right = right;
        sizes.offset = offset;
        const Band band(sizes);
        const auto sees = [&](int t, int s) {
          return s >= sizes.first_key(t) && s <= sizes.last_key(t);
        };
        for (int t = 0; t < 13; ++t) {
          for (int s = 0; s < 17; ++s) REQUIRE(band.sees(t, s) == sees(t, s));
        }
        for (int t0 = 0; t0 < 13; t0 += 4) {
          const int t1 = std::min(t0 + 4, 13);
          for (int s0 = 0; s0 < 17; s0 += 5) {
            const int s1 = std::min(s0 + 5, 17);
            bool all = true, any = false;
            for (int t = t0; t < t1; ++t) {
              for (int s = s0; s < s1; ++s) {
                all = all && sees(t, s);
                any = any || sees(t, s);
                if (!sees(t, s)) continue;
                REQUIRE((band.keys(t0, t1).begin <= s && s < band.keys(t0, t1).end));
                REQUIRE((band.queries(s0, s1).begin <= t && t < band.queries(s0, s1).end));
              }
            }
            REQUIRE(band.full(t0, t1, s0, s1) == all);
            // A band may pass between the corners; it may not claim to be empty when it is not.
            if (any) REQUIRE_FALSE(band.none(t0, t1, s0, s1));
          }
        }
      }
    }
  }
}

TEST_CASE("the order of tiles takes each once, and few heads at a time") {
  for (const int heads : {1, 15, 16, 17, 40}) {
    for (const int blocks : {1, 3, 20}) {
      std::vector<int> taken(static_cast<std::size_t>(heads * blocks));
      for (int i = 0; i < heads * blocks; ++i) {
        const Place p = place(i, heads, blocks);
        REQUIRE((p.head >= 0 && p.head < heads && p.block >= 0 && p.block < blocks));
        REQUIRE(p.head / 16 == i / (16 * blocks));
        ++taken[static_cast<std::size_t>(p.head * blocks + p.block)];
      }
      for (const int times : taken) REQUIRE(times == 1);
    }
  }
}

}  // namespace attnbench::kernels::cuda::test
