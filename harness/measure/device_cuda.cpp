#include "harness/measure/device.hpp"

#include <nlohmann/json.hpp>

#ifdef ATTNBENCH_CUDA_KERNELS
#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>

#include "attention/kernels/cuda/cards.hpp"
#include "harness/measure/cuda_loops.hpp"
#include "harness/measure/nvml.hpp"
#endif

namespace attnbench::measure {
namespace {

#ifdef ATTNBENCH_CUDA_KERNELS

namespace cuda = kernels::cuda;

/// Memory that goes when it does.
class Buffer {
 public:
  explicit Buffer(std::size_t bytes) : bytes_(bytes), data_(cuda::allocate(bytes)) {}
  ~Buffer() { cuda::release(data_); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  void* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  std::size_t bytes_;
  void* data_;
};

class EventStopwatch final : public Stopwatch {
 public:
  EventStopwatch() : others_(std::max<std::size_t>(2 * cuda::card().l2_bytes, 1 << 20)) {}

  double time(const std::function<void()>& body) override {
    // Emptying the cache also gives the host the time to queue the body before the device is there.
    cuda::fill(others_.data(), ++byte_, others_.bytes());
    begin_.record({});
    body();
    end_.record({});
    return end_.seconds_since(begin_);
  }
  double now() const override {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  }

 private:
  Buffer others_;  ///< twice what the cache holds
  unsigned char byte_ = 0;
  cuda::Event begin_;
  cuda::Event end_;
};

/// The driver as it names itself; empty where it does not.
std::string driver_text() {
  std::ifstream stream("/proc/driver/nvidia/version");
  std::string line;
  std::getline(stream, line);
  const std::size_t begin = line.find("NVIDIA");
  return begin == std::string::npos ? line : line.substr(begin);
}

/// The least seconds of what `queue` queues, out of a few.
double least_cuda_seconds(int trials, const std::function<void()>& queue) {
  cuda::Event begin;
  cuda::Event end;
  double least = std::numeric_limits<double>::infinity();
  queue();
  for (int trial = 0; trial < trials; ++trial) {
    begin.record({});
    queue();
    end.record({});
    least = std::min(least, end.seconds_since(begin));
  }
  return least;
}

/// Bytes read and written, per second, of a copy much larger than the cache.
double copy_rate(std::size_t l2_bytes) {
  const Buffer from(8 * l2_bytes + (std::size_t{256} << 20));
  const Buffer to(from.bytes());
  cuda::fill(from.data(), 1, from.bytes());
  const double seconds =
      least_cuda_seconds(10, [&] { cuda::copy_on_device(to.data(), from.data(), from.bytes()); });
  return 2.0 * static_cast<double>(from.bytes()) / seconds;
}

#endif

class Cuda final : public Device {
 public:
  std::string name() const override { return "cuda"; }

#ifdef ATTNBENCH_CUDA_KERNELS

  std::string refusal(int index) const override {
    const std::string built = ATTNBENCH_TORCH_CUDA_REFUSAL;
    return built.empty() ? cuda::refusal(index) : built;
  }
  void select(int index) const override { cuda::select(index); }
  nlohmann::json card(int index) const override {
    const cuda::Card& card = cuda::card(index);
    nlohmann::json facts = {
        {"name", card.name},
        {"compute_capability", std::to_string(card.major) + "." + std::to_string(card.minor)},
        {"multiprocessors", card.multiprocessors},
        {"l2_bytes", card.l2_bytes},
        {"memory_bytes", card.memory_bytes},
        { "driver_cuda",
          cuda::driver_cuda() }};
    if (const std::string driver = driver_text(); !driver.empty()) facts["driver"] = driver;
    return facts;
  }
  nlohmann::json condition(int index) const override {
    return nvml_condition(cuda::pci_address(index));
  }
  std::unique_ptr<Stopwatch> stopwatch() const override {
    return std::make_unique<EventStopwatch>();
  }

  nlohmann::json ceilings(int) const override {
    const cuda::Card& card = cuda::card();
    const CudaLoops loops(card);
    const std::int64_t rounds = 20'000;
    const double fma = least_cuda_seconds(5, [&] { loops.multiply_add(rounds, {}); });
    const double exp = least_cuda_seconds(5, [&] { loops.exponentials(rounds, {}); });
    return {{"fma_float32_flops_per_second", loops.multiply_add(rounds, {}) / fma},
            {"exp_float32_per_second", loops.exponentials(rounds, {}) / exp},
            {"exponential_units", "own"},
            {"bandwidth_dram_bytes_per_second", copy_rate(card.l2_bytes)},
            {"clock_hz", loops.clock_hz({})},
            { "clock_greatest_hz",
              max_clock_hz() }};
  }

  double clock_ratio() const override {
    const double greatest = max_clock_hz();
    return greatest > 0 ? CudaLoops(cuda::card()).clock_hz({}) / greatest : 0;
  }

  double calibration_seconds(int) const override {
    const CudaLoops loops(cuda::card());
    return least_cuda_seconds(3, [&] {
      loops.multiply_add(2'000, {});
      loops.exponentials(1'000, {});
    });
  }

#else

  std::string refusal(int) const override {
    std::string cards;
    for (const std::string& card : cards_of_driver()) cards += (cards.empty() ? "" : "; ") + card;
    return (cards.empty() ? "" : "the driver lists " + cards + ", but ") +
           std::string(
#ifdef ATTNBENCH_WHEEL
               "wheels are built without CUDA: a checkout's launcher builds the CUDA kernels, for "
#else
               "this program was built without CUDA: its launcher builds the CUDA kernels for "
#endif
               "the first command with --device cuda, such as ./attnbench doctor --device cuda");
  }
  std::unique_ptr<Stopwatch> stopwatch() const override { return nullptr; }
  nlohmann::json ceilings(int) const override { return nlohmann::json::object(); }
  double calibration_seconds(int) const override { return 0; }

#endif
};

}  // namespace

std::unique_ptr<Device> device_cuda() { return std::make_unique<Cuda>(); }

}  // namespace attnbench::measure
