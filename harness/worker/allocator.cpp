#include "harness/worker/allocator.hpp"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>

#include "attention/torch/torch.hpp"

namespace attnbench::worker {
namespace {

std::atomic<std::int64_t> live{0};
std::atomic<std::int64_t> peak{0};
std::atomic<std::int64_t> limit{0};

/// In front of every block: its size. A whole cache line, so that the block keeps its alignment.
/// oneDNN frees through a raw deleter and needs data == context, so there is no room for it
/// elsewhere.
constexpr std::size_t header_bytes = 64;

void count(std::int64_t bytes) {
  const std::int64_t now = live.fetch_add(bytes) + bytes;
  std::int64_t seen = peak.load();
  while (seen < now && !peak.compare_exchange_weak(seen, now)) {
  }
}

void* take(std::size_t bytes) {
  const auto size = static_cast<std::int64_t>(bytes);
  const std::int64_t most = limit.load();
  if (size < 0 || (most > 0 && live.load() + size > most)) {
    throw OutOfMemory(size, live.load(), most);
  }
  void* block = nullptr;
  if (posix_memalign(&block, header_bytes, bytes + header_bytes) != 0) {
    throw OutOfMemory(size, live.load(), most);
  }
  std::memcpy(block, &size, sizeof(size));
  count(size);
  return static_cast<char*>(block) + header_bytes;
}

void give_back(void* data) {
  if (data == nullptr) return;
  void* block = static_cast<char*>(data) - header_bytes;
  std::int64_t size = 0;
  std::memcpy(&size, block, sizeof(size));
  live.fetch_sub(size);
  std::free(block);
}

/// The compatibility place of allocators: `allocate` is const in LibTorch 1.13 and not in later
/// ones, which also ask for `copy_data`. Both forms are here without `override`, and each version's
/// base class takes the one it knows.
class CountingAllocator final : public c10::Allocator {
 public:
  // NOLINTBEGIN(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)
  c10::DataPtr allocate(std::size_t bytes) const { return made(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return made(bytes); }
  c10::DeleterFnPtr raw_deleter() const { return &give_back; }
  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
  // NOLINTEND(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)

 private:
  static c10::DataPtr made(std::size_t bytes) {
    const c10::Device device(c10::DeviceType::CPU);
    if (bytes == 0) return {nullptr, nullptr, &give_back, device};
    void* data = take(bytes);
    return {data, data, &give_back, device};
  }
};

class CpuMeter final : public tasks::MemoryMeter {
 public:
  std::int64_t live_bytes() const override { return live.load(); }
  std::int64_t peak_bytes() const override { return peak.load(); }
  void reset_peak() override { peak.store(live.load()); }
  std::int64_t limit_bytes() const override { return limit.load(); }
};

}  // namespace

OutOfMemory::OutOfMemory(std::int64_t wanted_bytes, std::int64_t live_bytes,
                         std::int64_t limit_bytes)
    : message_(
          "a tensor of " + std::to_string(wanted_bytes) + " bytes did not fit beside " +
          std::to_string(live_bytes) + " bytes in use" +
          (limit_bytes > 0 ? ", with a limit of " + std::to_string(limit_bytes) + " bytes" : "")) {}

void install_counting_allocator() {
  static CountingAllocator allocator;
  // The priority must beat that of ATen's own, which is 0.
  c10::SetAllocator(c10::DeviceType::CPU, &allocator, 100);
}

void set_memory_limit(std::int64_t bytes) { limit.store(std::max<std::int64_t>(0, bytes)); }

tasks::MemoryMeter& cpu_memory() {
  static CpuMeter meter;
  return meter;
}

}  // namespace attnbench::worker
