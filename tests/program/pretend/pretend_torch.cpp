// The parts of attention/torch/cuda.hpp that call a device, for the cards that only pretend: their
// tensors are the CPU's, and so is the allocator that counts them.
#include <cstring>

#include "attention/torch/cuda.hpp"
#include "harness/worker/allocator.hpp"

namespace attnbench {
namespace {

/// The counting allocator with a limit of the card's, refused in the way of LibTorch's allocator
/// for CUDA. See CountingAllocator for the two forms.
class CardAllocator final : public c10::Allocator {
 public:
  CardAllocator(c10::Allocator& beneath, std::int64_t limit) : beneath_(beneath), limit_(limit) {}
  // NOLINTBEGIN(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)
  c10::DataPtr allocate(std::size_t bytes) const { return made(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return made(bytes); }
  c10::DeleterFnPtr raw_deleter() const { return beneath_.raw_deleter(); }
  void copy_data(void* to, const void* from, std::size_t bytes) const {
    std::memcpy(to, from, bytes);
  }
  // NOLINTEND(modernize-use-override,cppcoreguidelines-explicit-virtual-functions)

 private:
  c10::DataPtr made(std::size_t bytes) const {
    if (worker::cpu_memory().live_bytes() + static_cast<std::int64_t>(bytes) > limit_) {
      C10_THROW_ERROR(OutOfMemoryError,
                      "the card is out of memory, " + std::to_string(limit_) + " bytes allowed");
    }
    return beneath_.allocate(bytes);
  }

  c10::Allocator& beneath_;
  std::int64_t limit_;
};

}  // namespace

void load_torch_cuda() {}

std::string torch_device(const std::string&) { return "cpu"; }

void use_device(const std::string&) {}

void limit_device_memory(std::int64_t limit_bytes, std::int64_t total_bytes) {
  if (limit_bytes <= 0 || limit_bytes >= total_bytes) return;
  worker::install_counting_allocator();
  static CardAllocator allocator(*c10::GetAllocator(at::kCPU), limit_bytes);
  c10::SetAllocator(at::kCPU, &allocator, 200);  // above the counting one's priority
}

void synchronize(const std::string&) {}

DeviceMemory device_memory(const std::string&) {
  DeviceMemory memory;
  memory.live = worker::cpu_memory().live_bytes();
  memory.peak = memory.peak_reserved = worker::cpu_memory().peak_bytes();
  return memory;
}

void reset_peak_memory(const std::string&) { worker::cpu_memory().reset_peak(); }

kernels::cuda::Stream current_stream(const at::Device&) { return {}; }

SideStream::SideStream(const std::string&) : before_(c10::Stream::DEFAULT, at::Device(at::kCPU)) {}
SideStream::~SideStream() = default;

}  // namespace attnbench
