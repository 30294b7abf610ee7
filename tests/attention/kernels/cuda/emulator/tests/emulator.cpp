// The emulator is itself held to what the PTX ISA says, and must find what it is there to find.
#include <random>

#include "attention/kernels/rows.hpp"
#include "tests/attention/kernels/cuda/emulator/device_code.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::emulated {
namespace {

using kernels::BFloat16;
using kernels::Half;

TEST_CASE("every thread of every block runs once and knows where it is") {
  std::vector<int> seen(2 * 3 * 70, 0);
  run({3, 2, 1}, {35, 2, 1}, 0, [&] {
    const unsigned block = blockIdx.y * gridDim.x + blockIdx.x;
    ++seen[block * 70 + threadIdx.y * blockDim.x + threadIdx.x];
  });
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
}

TEST_CASE("a barrier is passed when all have come, the ended left out") {
  std::vector<int> before(96), after(96);
  run({1, 1, 1}, {96, 1, 1}, 0, [&] {
    const int t = self().number;
    if (t >= 90) return;
    before[static_cast<std::size_t>(t)] = 1;
    __syncthreads();
    for (int i = 0; i < 90; ++i)
      after[static_cast<std::size_t>(t)] += before[static_cast<std::size_t>(i)];
    if (__syncthreads_or(t == 89) == 0 || __syncthreads_or(0) != 0) throw Fault("votes");
  });
  for (std::size_t t = 0; t < 90; ++t) CHECK(after[t] == 90);
}

TEST_CASE("threads that do not meet run in no order that a program could rely on") {
  int first_before_last = 0;
  for (int times = 0; times < 16; ++times) {
    bool first = false;
    run({1, 1, 1}, {64, 1, 1}, 0, [&] {
      if (self().number == 0) first = true;
      if (self().number == 63 && first) ++first_before_last;
    });
  }
  CHECK(first_before_last > 0);
  CHECK(first_before_last < 16);
}

TEST_CASE("lanes exchange what they hold") {
  run({1, 1, 1}, {64, 1, 1}, 0, [&] {
    const int lane = self().lane();
    if (__shfl_xor_sync(~0u, lane, 5) != (lane ^ 5)) throw Fault("xor");
    if (__any_sync(~0u, lane == 9) == 0 || __any_sync(~0u, 0) != 0) throw Fault("votes");
  });
}

TEST_CASE("a deadlock, a split warp and lanes that do different things are faults") {
  CHECK_THROWS_WITH(
      run({1, 1, 1}, {64, 1, 1}, 0,
          [] {
            while (self().number == 3) wait_until([] { return false; }, "nothing");
            __syncthreads();
          }),
      Catch::Contains("deadlock") && Catch::Contains("63 threads") && Catch::Contains("nothing"));
  CHECK_THROWS_WITH(run({1, 1, 1}, {32, 1, 1}, 0,
                        [] {
                          if (self().lane() < 16) __syncwarp();
                        }),
                    Catch::Contains("deadlock"));
  CHECK_THROWS_WITH(run({1, 1, 1}, {32, 1, 1}, 0,
                        [] {
                          if (self().lane() < 16) {
                            __syncwarp();
                          } else {
                            __any_sync(~0u, 1);
                          }
                        }),
                    Catch::Contains("meets"));
  CHECK_THROWS_AS(run({1, 1, 1}, {1025, 1, 1}, 0, [] {}), Fault);
}

TEST_CASE("shared memory begins as NaN, ends where it ends, and is asked for aligned") {
  run({1, 1, 1}, {1, 1, 1}, 256, [] {
    ATTNBENCH_SHARED(float, numbers, 128);
    for (int i = 0; i < 64; ++i) {
      if (numbers[i] == numbers[i]) throw Fault("not NaN");
    }
    const std::uint32_t begin = shared_address(numbers);
    if (shared_pointer(begin + 240, 16, 16) != reinterpret_cast<unsigned char*>(numbers) + 240) {
      throw Fault("address");
    }
  });
  for (const std::uint32_t wrong : {248u, 8u, 100000u}) {
    CHECK_THROWS_AS(run({1, 1, 1}, {1, 1, 1}, 256,
                        [=] { shared_pointer(shared_address(shared_memory()) + wrong, 16, 16); }),
                    Fault);
  }
}

TEST_CASE("an asynchronous copy is there when it was waited for, and not before") {
  alignas(16) const float numbers[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  run({1, 1, 1}, {1, 1, 1}, 64, [&] {
    ATTNBENCH_SHARED(float, to, 16);
    to[3] = 9;
    copy_async(shared_address(to), numbers, 16);
    if (to[3] == 9) throw Fault("what stood there is gone");
    commit_copies();
    copy_async(shared_address(to + 4), numbers + 4, 8);
    commit_copies();
    if (to[0] == 1) throw Fault("early");
    wait_copies(1);
    if (to[0] != 1 || to[3] != 4 || to[4] == 5) throw Fault("the first group");
    wait_copies(0);
    if (to[5] != 6 || to[6] != 0 || to[7] != 0) throw Fault("the rest becomes 0");
  });
  CHECK_THROWS_AS(run({1, 1, 1}, {1, 1, 1}, 64,
                      [&] { copy_async(shared_address(shared_memory()), numbers + 1, 16); }),
                  Fault);
}

/// Numbers that a 16-bit format holds exactly.
std::vector<float> small_integers(std::size_t count, unsigned seed) {
  std::mt19937 engine(seed);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = static_cast<float>(static_cast<int>(engine() % 17) - 8);
  return numbers;
}

/// a (16 x 16) times b (16 x 8), both brought to registers by ldmatrix: a as it stands, b, which
/// stands as [depth, column], transposed.
template <class T>
void multiply_by_fragments() {
  const auto a = small_integers(256, 1), b = small_integers(128, 2);
  std::vector<float> product(128);
  run({1, 1, 1}, {32, 1, 1}, 1024, [&] {
    ATTNBENCH_SHARED(T, tiles, 128);
    const auto lane = static_cast<std::size_t>(self().lane());
    for (std::size_t i = lane; i < 256; i += 32) kernels::narrow(a[i], tiles[i]);
    for (std::size_t i = lane; i < 128; i += 32) kernels::narrow(b[i], tiles[256 + i]);
    __syncwarp();
    std::uint32_t left[4], right[2];
    load_matrices(left, shared_address(tiles + lane % 16 * 16 + lane / 16 * 8), false);
    load_matrices(right, shared_address(tiles + 256 + lane % 16 * 8), true);
    float sum[4] = {1, 1, 1, 1};
    multiply_add_k16<T>(sum, left, right[0], right[1]);
    for (std::size_t n = 0; n < 4; ++n) {
      product[(lane / 4 + n / 2 * 8) * 8 + lane % 4 * 2 + n % 2] = sum[n];
    }
  });
  for (std::size_t row = 0; row < 16; ++row) {
    for (std::size_t column = 0; column < 8; ++column) {
      float expected = 1;
      for (std::size_t k = 0; k < 16; ++k) expected += a[16 * row + k] * b[8 * k + column];
      REQUIRE(product[8 * row + column] == expected);
    }
  }
}

TEST_CASE("fragments loaded and multiplied are the product of the matrices") {
  multiply_by_fragments<BFloat16>();
  multiply_by_fragments<Half>();
}

TEST_CASE("a transposed matrix is transposed") {
  run({1, 1, 1}, {32, 1, 1}, 0, [] {
    const auto lane = static_cast<std::uint32_t>(self().lane());
    const std::uint32_t row = lane / 4, column = lane % 4 * 2;
    const std::uint32_t mine = (8 * row + column) | (8 * row + column + 1) << 16;
    if (transpose_matrix(mine) != ((8 * column + row) | (8 * (column + 1) + row) << 16)) {
      throw Fault("movmatrix");
    }
  });
}

}  // namespace
}  // namespace attnbench::emulated
