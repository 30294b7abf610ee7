#include "attention/kernels/cuda/recurrent/plan.hpp"

#include <utility>

#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("cuda recurrent plan: segments cover the tokens, and none is empty") {
  for (const std::int64_t heads : {1, 2, 7, 64, 131, 132, 400}) {
    for (const std::int64_t length : {1, 63, 64, 65, 129, 1000, 4096, 65536, 1000000}) {
      for (const std::int64_t width : {1, 32, 64, 100, 128, 256}) {
        const RecurrentPlan plan = plan_recurrence({heads, length, width, width}, 132, false);
        CAPTURE(heads, length, width);
        REQUIRE_FALSE(plan.scan);
        REQUIRE(plan.latents >= width);
        REQUIRE(plan.slices * plan.warps * 16 >= width);
        REQUIRE((plan.slices - 1) * plan.warps * 16 < width);
        const std::int64_t each = std::int64_t{plan.segment_chunks} * chunk_tokens;
        REQUIRE(plan.segments * each >= length);
        REQUIRE((plan.segments - 1) * each < length);
        REQUIRE(plan.segments <= 65535);
      }
    }
  }
}

TEST_CASE("cuda recurrent plan: heads that fill the card are not cut into segments") {
  CHECK(plan_recurrence({132, 1 << 20, 64, 64}, 132, false).segments == 1);
  CHECK(plan_recurrence({66, 1 << 20, 128, 128}, 132, false).segments == 1);  // two slices each
  CHECK(plan_recurrence({16, 1 << 20, 64, 64}, 132, false).segments > 8);
  CHECK(plan_recurrence({1, 64, 64, 64}, 132, false).segments == 1);
}

TEST_CASE("cuda recurrent plan: few segments are folded, many are passed through once") {
  // The sizes at which the kernels' tests ask for both, on the emulated card and on a large one.
  for (const auto& [multiprocessors, length] : {std::pair{4, 1500}, std::pair{132, 3000}}) {
    CHECK_FALSE(plan_recurrence({1, length, 64, 64}, multiprocessors, false).folded());
    const RecurrentPlan few = plan_recurrence({1, 600, 64, 64}, multiprocessors, false);
    CHECK(few.segments > 1);
    CHECK(few.folded());
  }
}

TEST_CASE("cuda recurrent plan: what no tile takes is taken token by token") {
  CHECK(plan_recurrence({8, 100, 257, 64}, 132, false).scan);
  CHECK(plan_recurrence({8, 100, 16, 64}, 132, true).scan);
}

}  // namespace attnbench::kernels::cuda::test
