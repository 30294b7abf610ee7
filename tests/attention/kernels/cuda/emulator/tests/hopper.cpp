// The emulated Hopper is itself held to what the PTX ISA says, and must find what it is there to
// find.
#include "tests/attention/kernels/cuda/emulator/hopper.hpp"

#include <cmath>
#include <random>
#include <vector>

#include "attention/kernels/rows.hpp"
#include "tests/attention/kernels/cuda/emulator/device_code.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::emulated {
namespace {

using kernels::BFloat16;
using kernels::Half;
using kernels::narrow;
using kernels::widen;

constexpr Index one{1, 1, 1};

/// Where byte `x` of row r of a panel of 128-byte rows lies, the panel aligned to 1024 bytes: the
/// 16-byte pieces of a row are permuted by the row's number modulo 8.
std::size_t place(std::size_t r, std::size_t x) { return r * 128 + (x / 16 ^ r % 8) * 16 + x % 16; }

TEST_CASE("a tile arrives in panels of swizzled rows, with zeros out of bounds") {
  constexpr std::size_t length = 13, width = 128, heads = 3, batch = 2;
  alignas(16) static BFloat16 array[batch * heads * length * width];
  for (std::size_t i = 0; i < std::size(array); ++i) array[i].bits = static_cast<std::uint16_t>(i);
  const TensorMap map = encode_map(false, array, {64, length, width / 64, heads, batch},
                                   {width * 2, 128, length * width * 2, heads * length * width * 2},
                                   {64, 16, 2, 1, 1});
  for (int times = 0; times < 8; ++times) {  // now early, now late
    run(one, {32, 1, 1}, 8192, [&] {
      const std::uint32_t tile = shared_address(shared_memory()), barrier = tile + 4096;
      if (self().number == 0) {
        mbarrier_make(barrier, 1);
        mbarrier_publish();
        mbarrier_arrive(barrier, 16 * width * 2);
        load_tile(map, tile, barrier, {0, 5, 0, 2, 1});
      }
      __syncthreads();
      mbarrier_wait(barrier, 0);
      for (std::size_t r = 0; r < 16; ++r) {
        for (std::size_t c = 0; c < width; ++c) {
          std::uint16_t found;
          std::memcpy(&found, shared_memory() + c / 64 * 2048 + place(r, c % 64 * 2), 2);
          const std::size_t from = ((heads + 2) * length + r + 5) * width + c;
          if (found != (r + 5 < length ? array[from].bits : 0)) throw Fault("a wrong number");
        }
      }
    });
  }
}

/// d (64 x columns) = start + a (64 x 32) b (32 x columns): A from shared memory and B K-major, or
/// A from registers and B N-major.
template <class T>
void multiply(int columns, bool transposed) {
  const auto n_columns = static_cast<std::size_t>(columns);
  std::mt19937 engine(5);
  const auto random = [&](std::size_t count) {
    std::vector<T> x(count);
    for (T& value : x) narrow(static_cast<float>(static_cast<int>(engine() % 17) - 8), value);
    return x;
  };
  const std::vector<T> a = random(64 * 32), b = random(32 * n_columns);
  std::vector<float> d(64 * n_columns);
  run(one, {128, 1, 1}, 65536, [&] {
    const std::uint32_t address = shared_address(shared_memory());
    const auto put = [&](std::size_t at, T value) { std::memcpy(shared_memory() + at, &value, 2); };
    constexpr std::size_t b_at = 8192;
    const std::size_t panel = transposed ? 32 * 128 : 0;
    if (self().number == 0) {
      for (std::size_t m = 0; m < 64; ++m) {
        for (std::size_t k = 0; k < 32; ++k) put(place(m, 2 * k), a[m * 32 + k]);
      }
      for (std::size_t k = 0; k < 32; ++k) {
        for (std::size_t n = 0; n < n_columns; ++n) {
          put(b_at + (transposed ? n / 64 * panel + place(k, n % 64 * 2) : place(n, 2 * k)),
              b[k * n_columns + n]);
        }
      }
    }
    __syncthreads();
    const auto descriptor = [](std::uint64_t at, std::uint64_t leading) {
      return std::uint64_t{1} << 62 | std::uint64_t{1024 / 16} << 32 | leading / 16 << 16 | at / 16;
    };
    const auto lane = static_cast<std::size_t>(self().lane());
    const std::size_t row = static_cast<std::size_t>(self().warp()) * 16 + lane / 4;
    const std::size_t column = lane % 4 * 2;
    std::uint32_t registers[2][4];
    for (std::size_t step = 0; step < 2; ++step) {
      for (std::size_t i = 0; i < 4; ++i) {
        const T* pair = &a[(row + i % 2 * 8) * 32 + step * 16 + column + i / 2 * 8];
        registers[step][i] = pair[0].bits | static_cast<std::uint32_t>(pair[1].bits) << 16;
      }
    }
    std::vector<float> mine(n_columns / 2, 3);
    wgmma_fence();
    for (std::uint32_t step = 0; step < 2; ++step) {
      if (transposed) {
        wgmma(std::is_same_v<T, Half>, columns, mine.data(), true, registers[step], 0,
              descriptor(address + b_at + step * 2048, panel), true);
      } else {
        wgmma(std::is_same_v<T, Half>, columns, mine.data(), step > 0, nullptr,
              descriptor(address + step * 32, 16), descriptor(address + b_at + step * 32, 16),
              false);
      }
    }
    if (!std::isnan(mine[0])) throw Fault("an uncommitted product is there");
    wgmma_commit();
    wgmma_wait(0);
    for (std::size_t i = 0; i < mine.size(); ++i) {
      d[(row + i / 2 % 2 * 8) * n_columns + i / 4 * 8 + column + i % 2] = mine[i];
    }
  });
  for (std::size_t m = 0; m < 64; ++m) {
    for (std::size_t n = 0; n < n_columns; ++n) {
      float expected = transposed ? 3 : 0;
      for (std::size_t k = 0; k < 32; ++k) {
        expected += widen(a[m * 32 + k]) * widen(b[k * n_columns + n]);
      }
      REQUIRE(d[m * n_columns + n] == expected);
    }
  }
}

TEST_CASE("a warpgroup's product is that of the matrices") {
  multiply<BFloat16>(128, false);
  multiply<BFloat16>(128, true);
  multiply<Half>(80, false);
  multiply<Half>(64, true);
}

TEST_CASE("products without a fence, and what is read before the wait, are found") {
  float d[4] = {1, 1, 1, 1};
  const auto order = [&](float* sums) {
    wgmma(false, 8, sums, true, nullptr, std::uint64_t{1} << 62, std::uint64_t{1} << 62, false);
  };
  CHECK_THROWS_WITH(run(one, {128, 1, 1}, 4096, [&] { order(d); }), Catch::Contains("wgmma.fence"));
  bool late = false;
  run(one, {128, 1, 1}, 4096, [&] {
    std::fill_n(shared_memory(), 4096, static_cast<unsigned char>(0));
    for (int times = 0; times < 8; ++times) {
      float sums[4] = {1, 1, 1, 1};
      wgmma_fence();
      wgmma(false, 8, sums, true, nullptr, std::uint64_t{1} << 62 | 64, std::uint64_t{1} << 62 | 64,
            false);
      wgmma_commit();
      late = late || std::isnan(sums[0]);
      wgmma_wait(0);
      if (sums[0] != 1) throw Fault("1 + 0 * 0");
    }
  });
  CHECK(late);
}

TEST_CASE("barriers without initialisation, or with too many or too few arrivals, are found") {
  const auto with_barrier = [](const std::function<void(std::uint32_t)>& use) {
    run(one, {1, 1, 1}, 64, [&] { use(shared_address(shared_memory())); });
  };
  CHECK_THROWS_WITH(with_barrier([](std::uint32_t b) { mbarrier_wait(b, 0); }),
                    Catch::Contains("holds no barrier"));
  CHECK_THROWS_WITH(with_barrier([](std::uint32_t b) {
                      mbarrier_make(b, 2);
                      mbarrier_arrive(b, 0);
                      mbarrier_wait(b, 0);
                    }),
                    Catch::Contains("deadlock"));
  CHECK_THROWS_WITH(with_barrier([](std::uint32_t b) {
                      mbarrier_make(b, 1);
                      mbarrier_arrive(b, 16);
                      mbarrier_arrive(b, 0);
                    }),
                    Catch::Contains("more arrivals"));
  with_barrier([](std::uint32_t b) {
    mbarrier_make(b, 1);
    mbarrier_wait(b, 1);  // the phase before the first is over
    mbarrier_arrive(b, 0);
    mbarrier_wait(b, 0);
    mbarrier_arrive(b, 0);
    mbarrier_wait(b, 1);
  });
}

}  // namespace
}  // namespace attnbench::emulated
