// The CUDA kernel of attention/README.md, run by the emulator as it stands on the page and held to
// the CPU's, which `attnbench check` holds to the definition.
#include <cuda_runtime.h>

#include <random>

#include "kernel.hpp"
#include "tests/support/catch.hpp"

// What the page's file asks of CUDA's library beside the launch.
extern "C" {
cudaError_t CUDARTAPI cudaSetDevice(int device) {
  return device == 0 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t CUDARTAPI cudaGetLastError() { return cudaSuccess; }
const char* CUDARTAPI cudaGetErrorString(cudaError_t) { return "no such device"; }
}

namespace {

template <class T>
std::vector<T> random_numbers(std::int64_t count, unsigned seed) {
  std::mt19937 generator(seed);
  std::normal_distribution<double> normal;
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& one : numbers) one = static_cast<T>(normal(generator));
  return numbers;
}

template <class T>
void compare(const fading::Sizes& sizes, double tolerance) {
  const std::int64_t sequences = sizes.batch * sizes.heads;
  std::vector<T> keep, take;  // of each head
  for (std::int64_t h = 0; h < sizes.heads; ++h) {
    take.push_back(static_cast<T>(1.0 / static_cast<double>(2 + 3 * h)));
    keep.push_back(1 - take.back());
  }
  const auto value = random_numbers<T>(sequences * sizes.length * sizes.width, 1);
  auto memory = random_numbers<T>(sequences * sizes.width, 2);
  auto memory_of_gpu = memory;
  std::vector<T> out(value.size()), out_of_gpu(value.size());
  attnbench::kernels::SerialTeam team;
  fading::scan(sizes, keep.data(), take.data(), value.data(), memory.data(), out.data(), team);
  fading::scan_on_cuda(sizes, keep.data(), take.data(), value.data(), memory_of_gpu.data(),
                       out_of_gpu.data(), 0, nullptr);
  const auto check = [&](const std::vector<T>& one, const std::vector<T>& other) {
    double worst = 0;
    for (std::size_t i = 0; i < one.size(); ++i) {
      worst = std::max(worst, std::abs(static_cast<double>(one[i] - other[i])));
    }
    CHECK(worst <= tolerance);
  };
  check(out, out_of_gpu);
  check(memory, memory_of_gpu);
}

}  // namespace

TEST_CASE("the page's CUDA kernel computes what its CPU kernel does") {
  for (const bool from_the_end : {false, true}) {
    for (const std::int64_t width : {1, 17, 64, 100}) {
      const fading::Sizes sizes{2, 3, 7, width, from_the_end};
      INFO("width " << width << ", from_the_end " << from_the_end);
      compare<double>(sizes, 1e-13);
      compare<float>(sizes, 3e-5);
    }
  }
}

TEST_CASE("the page's CUDA kernel says what CUDA complains of") {
  std::vector<float> one(1);
  float* const x = one.data();
  CHECK_THROWS_WITH(fading::scan_on_cuda({}, x, x, x, x, x, 1, nullptr),
                    Catch::Contains("fading on CUDA: no such device"));
}
