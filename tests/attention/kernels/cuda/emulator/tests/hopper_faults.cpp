// What the emulated Hopper must find: every rule of the hardware broken once.
#include <vector>

#include "tests/attention/kernels/cuda/emulator/device_code.hpp"
#include "tests/attention/kernels/cuda/emulator/hopper.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::emulated {
namespace {

constexpr Index one{1, 1, 1}, warpgroup{128, 1, 1};
constexpr int kib = 1024;

/// An operand of zeros at the beginning of shared memory, which both sides of a product can be.
std::uint64_t zeros(std::uint64_t address = kib) {
  return std::uint64_t{1} << 62 | std::uint64_t{kib / 16} << 32 | std::uint64_t{kib / 16} << 16 |
         address / 16;
}

/// One product of 64 x 8 whose sums, and left operand where it is in registers, are the thread's.
struct Mine {
  float sums[4] = {1, 1, 1, 1};
  std::uint32_t left[4] = {};

  void order(std::uint64_t right = zeros()) { wgmma(false, 8, sums, true, left, 0, right, true); }
};

/// Runs it for a warpgroup many times, since what is asynchronous happens now early, now late.
void many_times(const std::function<void(Mine&)>& use) {
  for (int times = 0; times < 8; ++times) {
    run(one, warpgroup, 12 * kib, [&] {
      for (std::size_t i = static_cast<std::size_t>(self().number); i < 12 * kib; i += 128) {
        shared_memory()[i] = 0;
      }
      __syncthreads();
      Mine mine;
      use(mine);
    });
  }
}

#define FINDS(words, ...) \
  CHECK_THROWS_WITH(many_times([](Mine & x) __VA_ARGS__), Catch::Contains(words))

TEST_CASE("a product as it should be is no fault") {
  many_times([](Mine& x) {
    for (int round = 0; round < 3; ++round) {
      wgmma_fence();
      x.order();
      x.order();
      wgmma_commit();
      x.order();  // in a row into the same sums no fence is asked for
      wgmma_commit();
      wgmma_wait(1);
      wgmma_wait(0);
      if (x.sums[3] != 1 + static_cast<float>(round)) throw Fault("1 + 0 * 0");
      ++x.sums[3];
      x.left[0] = 0x3f803f80;
    }
  });
}

TEST_CASE("registers of products that are written at the wrong time are found") {
  FINDS("after wgmma.fence", {
    wgmma_fence();
    x.order();
    wgmma_commit();
    wgmma_wait(0);
    wgmma_fence();
    x.sums[1] *= 2;
    x.order();
  });
  FINDS("after wgmma.fence", {
    wgmma_fence();
    x.order();
    wgmma_commit();
    wgmma_wait(0);
    wgmma_fence();
    x.left[2] = 1;
    x.order();
  });
  FINDS("an accumulator was written", {
    wgmma_fence();
    x.order();
    x.sums[2] = 0;
    wgmma_commit();
    wgmma_wait(0);
  });
  FINDS("an operand in registers was written", {
    wgmma_fence();
    x.order();
    wgmma_commit();
    x.left[3] = 1;
    wgmma_wait(0);
  });
}

TEST_CASE("operands that are not as their descriptors say are found") {
  const auto with = [](std::uint64_t right) {
    many_times([=](Mine& x) {
      wgmma_fence();
      x.order(right);
      wgmma_commit();
      wgmma_wait(0);
    });
  };
  with(zeros());
  CHECK_THROWS_WITH(with(zeros(kib + 128)), Catch::Contains("1024 bytes"));
  CHECK_THROWS_WITH(with(zeros() ^ std::uint64_t{1} << 37), Catch::Contains("1024 bytes"));
  CHECK_THROWS_WITH(with(zeros() | 1u << 15), Catch::Contains("between its fields"));
  CHECK_THROWS_WITH(with(zeros() ^ std::uint64_t{3} << 62), Catch::Contains("128 bytes"));
  CHECK_THROWS_WITH(with(zeros() | std::uint64_t{1} << 49), Catch::Contains("base offset"));
}

TEST_CASE("products that are never waited for, and warps that issue different ones, are found") {
  FINDS("ended before its products", {
    wgmma_fence();
    x.order();
    wgmma_commit();
  });
  FINDS("ordered different products", {
    wgmma_fence();
    x.order(self().warp() == 2 ? zeros(3 * kib) : zeros());
    wgmma_commit();
    wgmma_wait(0);
  });
  FINDS("ordered different products", {
    if (self().warp() == 3) return;
    wgmma_fence();
    x.order();
    wgmma_commit();
    wgmma_wait(0);
  });
}

TEST_CASE("a copy that is never waited for, and a read before it has arrived, are found") {
  alignas(16) static std::uint16_t array[8 * 64];
  std::fill(std::begin(array), std::end(array), std::uint16_t{0x3f80});
  const TensorMap map =
      encode_map(false, array, {64, 8, 1, 1, 1}, {128, 128, 16, 16}, {64, 8, 1, 1, 1});
  bool waited = false, was_gone = true, came = true;
  const auto copy = [&](std::uint32_t tile_at) {
    run(one, {32, 1, 1}, 4 * kib, [&] {
      const std::uint32_t tile = shared_address(shared_memory()) + tile_at;
      const std::uint32_t barrier = shared_address(shared_memory()) + 3 * kib;
      if (self().number != 0) return;
      auto* there = reinterpret_cast<std::uint16_t*>(shared_memory() + tile_at);
      there[5] = 7;
      mbarrier_make(barrier, 1);
      mbarrier_publish();
      mbarrier_arrive(barrier, kib);
      load_tile(map, tile, barrier, {0, 0, 0, 0, 0});
      was_gone = was_gone && there[5] != 7;
      if (!waited) return;
      mbarrier_wait(barrier, 0);
      came = came && there[5] == 0x3f80;
    });
  };
  const auto often = [&](std::uint32_t at) {
    for (int times = 0; times < 8; ++times) copy(at);
  };
  CHECK_THROWS_WITH(often(0), Catch::Contains("before a copy"));
  waited = true;
  often(0);
  CHECK(was_gone);
  CHECK(came);
  CHECK_THROWS_WITH(often(512), Catch::Contains("not aligned to 1024"));
}

TEST_CASE("tensor maps that the driver refuses are found") {
  alignas(16) static std::uint16_t array[64 * 8];
  const auto map = [](int offset, std::uint64_t rows, std::uint64_t stride, std::uint32_t box) {
    encode_map(false, array + offset, {64, rows, 1, 1, 1}, {stride, 128, 16, 16},
               {64, box, 1, 1, 1});
  };
  map(0, 8, 128, 256);
  CHECK_THROWS_WITH(map(4, 8, 128, 8), Catch::Contains("16 bytes"));
  CHECK_THROWS_WITH(map(0, 0, 128, 8), Catch::Contains("extent"));
  CHECK_THROWS_WITH(map(0, 8, 120, 8), Catch::Contains("stride"));
  CHECK_THROWS_WITH(map(0, 8, std::uint64_t{1} << 40, 8), Catch::Contains("stride"));
  CHECK_THROWS_WITH(map(0, 8, 128, 257), Catch::Contains("box"));
}

TEST_CASE("barriers that others use too early are found") {
  const auto with = [](bool meet, bool publish) {
    for (int times = 0; times < 8; ++times) {  // now one thread first, now the other
      run(one, {64, 1, 1}, kib, [&] {
        const std::uint32_t barrier = shared_address(shared_memory());
        if (self().number == 32) {
          mbarrier_make(barrier, 2);
          if (publish) mbarrier_publish();
        }
        if (meet) __syncthreads();
        if (self().lane() == 0) mbarrier_arrive(barrier, 0);
      });
    }
  };
  with(true, true);
  CHECK_THROWS_AS(with(false, true), Fault);
  alignas(16) static std::uint16_t array[64];
  const TensorMap map =
      encode_map(false, array, {64, 1, 1, 1, 1}, {128, 128, 16, 16}, {64, 1, 1, 1, 1});
  CHECK_THROWS_WITH(run(one, one, 2 * kib,
                        [&] {
                          const std::uint32_t tile = shared_address(shared_memory());
                          mbarrier_make(tile + kib, 1);
                          load_tile(map, tile, tile + kib, {0, 0, 0, 0, 0});
                        }),
                    Catch::Contains("not published"));
}

TEST_CASE("named barriers that are used in different ways are found") {
  const auto with = [](const std::function<void(int)>& use) {
    run(one, {64, 1, 1}, 0, [&] { use(self().warp()); });
  };
  with([](int warp) { named_barrier(1, 64, warp == 0); });
  CHECK_THROWS_WITH(with([](int warp) { named_barrier(1, warp == 0 ? 64 : 96, true); }),
                    Catch::Contains("disagree"));
  CHECK_THROWS_WITH(with([](int) { named_barrier(1, 40, true); }),
                    Catch::Contains("part of a warp"));
}

TEST_CASE("registers that a block does not have are waited for without end") {
  const auto with = [](int fewer, int more) {
    run(one, {384, 1, 1}, 0, [=] {  // 168 each
      if (self().number < 128) {
        set_registers(fewer, false);
      } else {
        set_registers(more, true);
      }
    });
  };
  with(24, 240);
  CHECK_THROWS_WITH(with(40, 240), Catch::Contains("deadlock") && Catch::Contains("registers"));
  CHECK_THROWS_WITH(with(24, 236), Catch::Contains("setmaxnreg to 236"));
  CHECK_THROWS_WITH(with(176, 240), Catch::Contains("wrong direction"));
  CHECK_THROWS_AS(run(one, warpgroup, 0,
                      [] {
                        if (self().warp() != 1) set_registers(24, false);
                      }),
                  Fault);
}

}  // namespace
}  // namespace attnbench::emulated
