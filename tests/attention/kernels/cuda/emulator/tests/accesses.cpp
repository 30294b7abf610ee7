// The watch must find what it is there to find, and nothing else. This file is compiled to be
// watched.
#include "tests/attention/kernels/cuda/emulator/accesses.hpp"

#include "attention/kernels/cuda/device.hpp"
#include "tests/attention/kernels/cuda/emulator/device_code.hpp"
#include "tests/support/catch.hpp"

namespace attnbench::emulated {
namespace {

using Catch::Contains;

/// Switches the watch on while it lives.
class Watched {
 public:
  Watched() : before_(watching()) { watch(true); }
  ~Watched() { watch(before_); }

 private:
  bool before_;
};

void run_watched(unsigned blocks, unsigned threads, const std::function<void()>& kernel) {
  const Watched watched;
  run({blocks, 1, 1}, {threads, 1, 1}, 4096, kernel);
}

/// Each thread writes a number and, after `between`, reads its neighbour's.
template <class Between>
std::function<void()> neighbours(int distance, const Between& between) {
  return [=] {
    ATTNBENCH_SHARED(float, numbers, 16);
    const int t = self().number, count = static_cast<int>(blockDim.x);
    numbers[t] = 1;
    between();
    volatile float got = numbers[(t + distance) % count];
    (void)got;
  };
}

TEST_CASE("a barrier left out between a write and a read is found, whoever comes first") {
  for (const int distance : {1, 32, 63}) {
    CHECK_NOTHROW(run_watched(2, 64, neighbours(distance, [] { __syncthreads(); })));
    CHECK_THROWS_WITH(run_watched(1, 64, neighbours(distance, [] {})),
                      Contains("since the last barrier"));
  }
}

TEST_CASE("lanes are ordered by __syncwarp, and not by a shuffle or a barrier of other warps") {
  CHECK_NOTHROW(run_watched(1, 32, neighbours(1, [] { __syncwarp(); })));
  CHECK_THROWS_WITH(run_watched(1, 32, neighbours(1, [] { __shfl_xor_sync(~0u, 1, 1); })),
                    Contains("since the last barrier"));
  CHECK_THROWS_WITH(run_watched(1, 64, neighbours(32, [] { __syncwarp(); })),
                    Contains("since the last barrier"));
}

TEST_CASE("a buffer that is written again while others read it is found") {
  const auto again = [](bool barrier) {
    return [=] {
      ATTNBENCH_SHARED(float, numbers, 16);
      const int t = self().number;
      for (int turn = 0; turn < 2; ++turn) {
        if (t < 32) numbers[t] = 1;
        __syncthreads();
        volatile float got = numbers[t % 32];
        (void)got;
        if (barrier) __syncthreads();
      }
    };
  };
  CHECK_NOTHROW(run_watched(1, 64, again(true)));
  CHECK_THROWS_WITH(run_watched(1, 64, again(false)), Contains("since the last barrier"));
  CHECK_NOTHROW(run_watched(1, 32, [] {  // a lane's read is done when its number was shuffled
    ATTNBENCH_SHARED(float, numbers, 16);
    const int lane = self().lane();
    numbers[lane] = 1;
    __syncwarp();
    const float got = __shfl_xor_sync(~0u, numbers[lane ^ 1], 3);
    numbers[lane] = got;
  }));
}

TEST_CASE("a __shared__ variable is watched, and is each block's own") {
  const auto kernel = [](bool barrier) {
    return [=] {
      __shared__ float whole;
      if (self().number == 0) whole = 2;
      if (barrier) __syncthreads();
      volatile float got = whole;
      (void)got;
    };
  };
  CHECK_NOTHROW(run_watched(3, 64, kernel(true)));
  CHECK_THROWS_WITH(run_watched(1, 64, kernel(false)), Contains("__shared__"));
}

/// Device memory that goes when it does.
struct Floats {
  explicit Floats(std::size_t count)
      : data(static_cast<float*>(kernels::cuda::allocate(sizeof(float) * count))) {}
  ~Floats() { kernels::cuda::release(data); }
  float* data;
};

TEST_CASE(
    "blocks that write what others of the launch read or write are found, and no later launch") {
  const Floats numbers(64);
  float* const data = numbers.data;
  const auto own = [=] { data[blockIdx.x] = 1; };
  const auto shifted = [=] { data[(blockIdx.x + 1) % gridDim.x] += 1; };
  const auto all = [=] { data[0] = 1; };
  const auto read_then_write = [=] {
    volatile float got = data[(blockIdx.x + 1) % gridDim.x];
    data[blockIdx.x] = got;
  };
  CHECK_NOTHROW(run_watched(4, 1, own));
  CHECK_NOTHROW(run_watched(4, 1, shifted));
  CHECK_THROWS_WITH(run_watched(4, 1, all), Contains("another block of the launch wrote"));
  CHECK_THROWS_WITH(run_watched(4, 1, read_then_write), Contains("another block of the launch"));
}

TEST_CASE("accesses beyond device or shared memory are found") {
  const Floats numbers(5);
  float* const data = numbers.data;
  for (const int wrong : {5, 6, 500, -1}) {
    CHECK_THROWS_WITH(run_watched(1, 1,
                                  [=] {
                                    volatile float got = data[wrong];
                                    (void)got;
                                  }),
                      Contains("past the end"));
  }
  CHECK_NOTHROW(run_watched(1, 1, [=] { data[4] = 1; }));
  CHECK_THROWS_WITH(run_watched(1, 1,
                                [] {
                                  ATTNBENCH_SHARED(float, shared, 16);
                                  shared[1024] = 1;
                                }),
                    Contains("past the end"));
}

TEST_CASE("an asynchronous copy is not read, nor its place written, before it was waited for") {
  const Floats numbers(64);
  float* const data = numbers.data;
  // What the thread does between beginning a copy and reading it.
  const auto copied = [=](const std::function<void()>& before, const std::function<void()>& after) {
    run_watched(1, 32, [&] {
      ATTNBENCH_SHARED(float, to, 16);
      const int lane = self().lane();
      before();
      if (lane < 16) copy_async(shared_address(to + 4 * lane), data + 4 * lane, 16);
      commit_copies();
      after();
      volatile float got = to[(lane + 4) % 32];
      (void)got;
      wait_copies(0);
    });
  };
  const auto waited = [] {
    wait_copies(0);
    __syncwarp();
  };
  CHECK_NOTHROW(copied([] {}, waited));
  CHECK_THROWS_WITH(copied([] {}, [] { __syncthreads(); }), Contains("not brought yet"));
  CHECK_THROWS_WITH(copied([] {}, [] { wait_copies(0); }), Contains("since the last barrier"));
  const auto read_before = [] {
    ATTNBENCH_SHARED(float, to, 16);
    volatile float got = to[31 - self().lane()];
    (void)got;
  };
  CHECK_THROWS_WITH(copied(read_before, waited), Contains("since the last barrier"));
}

TEST_CASE("an address that is not aligned for its type is found") {
  const Floats numbers(64);
  float* const data = numbers.data;
  const auto load = [=](int at) {
    return [=] {
      const float4 x = *reinterpret_cast<const float4*>(data + at);
      volatile float got = x.x + x.w;
      (void)got;
    };
  };
  CHECK_NOTHROW(run_watched(1, 1, load(8)));
  CHECK_THROWS_WITH(run_watched(1, 1, load(2)), Contains("not aligned to 16"));
}

}  // namespace
}  // namespace attnbench::emulated
