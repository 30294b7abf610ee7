// How the running memory's tokens are cut for a card, and what is refused.
#include "attention/kernels/cuda/lavo/plan.hpp"

#include "attention/kernels/cuda/lavo/layout.hpp"
#include "tests/attention/kernels/cuda/lavo_device.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("cuda running memory: tokens are cut at windows, each into one segment") {
  for (const std::int64_t length : {1, 5, 64, 100, 1000, 5000}) {
    for (const std::int64_t window : {0, 1, 7, 64, 100, 333, 6000}) {
      for (const std::int64_t heads : {1, 3, 40}) {
        auto sizes = sized(length, 64, 64, heads);
        if (window > 0) {
          sizes.order = MemoryOrder::windows;
          sizes.window = window;
          sizes.phase = window / 2;
        }
        CAPTURE(length, window, heads);
        const MemoryPlan plan =
            plan_memory(sizes, 64, false, heads == 3 ? memory_tensor_width(sizes) : 0, 32);
        const MemorySegments& cut = plan.reading;
        int at = 0;
        for (int k = 0; k < cut.count; ++k) {
          if (cut.begin(k) >= cut.end(k)) continue;
          REQUIRE(cut.begin(k) == at);
          at = cut.end(k);
          const int unit = cut.unit_begin(k / cut.parts);
          if (window > 0 && unit > 0) REQUIRE(plan.windows.ends(unit));
          if (plan.each_mean) REQUIRE(cut.parts == 1);
        }
        CHECK(at == length);
        CHECK(cut.count <= 4 * 64);
      }
    }
  }
}

TEST_CASE("cuda running memory: a tile of every size fits in a block of every card") {
  for (const std::size_t shared_bytes : {99 << 10, 163 << 10, 227 << 10}) {
    for (const int bases : {1, 20, 64, 65, 130, 255, 256}) {
      for (const int dim : {1, 20, 64, 128, 200, 256}) {
        for (const bool gradient : {false, true}) {
          CAPTURE(shared_bytes, bases, dim, gradient);
          const int tile = memory_tile(bases, dim, gradient, shared_bytes);
          const MemoryLayout layout(bases, dim, tile, gradient);
          CHECK(sizeof(float) * static_cast<std::size_t>(layout.floats) <= shared_bytes);
          const MemoryLayout next(bases, dim, 2 * tile, gradient);
          CHECK(
              (tile == 32 || sizeof(float) * static_cast<std::size_t>(next.floats) > shared_bytes));
        }
      }
    }
  }
}

TEST_CASE("cuda running memory: what cannot be done is refused with the reason") {
  auto sizes = sized(8, 257, 8);
  CHECK(lavo_refusal(sizes).find("256") != std::string::npos);
  CHECK_THROWS_AS(lavo_forward_bytes<BFloat16>(sizes), std::logic_error);
  CHECK_THROWS_AS(lavo_backward_bytes<float>(sizes), std::logic_error);
  sizes.bases = 256;
  CHECK(lavo_refusal(sizes).empty());
  sizes.head_dim = 257;
  CHECK(lavo_refusal(sizes).find("head_dim") != std::string::npos);
  sizes.head_dim = 256;
  sizes.memory_length = 9;
  CHECK(lavo_refusal(sizes).find("as many tokens") != std::string::npos);
  sizes.order = MemoryOrder::all;
  CHECK(lavo_refusal(sizes).empty());
  sizes.order = MemoryOrder::windows;
  sizes.memory_length = 8;
  sizes.window = 0;
  CHECK(lavo_refusal(sizes).find("window") != std::string::npos);
}

}  // namespace attnbench::kernels::cuda::test
