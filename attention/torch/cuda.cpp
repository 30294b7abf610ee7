#include "attention/torch/cuda.hpp"

#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>

#include <filesystem>
#include <iomanip>
#include <limits>
#include <sstream>

#include "core/errors.hpp"
#if ATTNBENCH_TORCH_VERSION >= 211
#include <ATen/DeviceAccelerator.h>
#include <c10/core/AllocatorConfig.h>
#endif

namespace attnbench {
namespace {

#if ATTNBENCH_TORCH_VERSION >= 211

constexpr const char* library_name = "libtorch_cuda.so";

/// In the folder of the CPU library.
std::filesystem::path cuda_library() {
  Dl_info info{};
  const auto inside = reinterpret_cast<void*>(&at::globalContext);
  if (dladdr(inside, &info) == 0 || info.dli_fname == nullptr) return library_name;
  return std::filesystem::path(info.dli_fname).parent_path() / library_name;
}

#endif

c10::impl::VirtualGuardImpl guard() { return c10::impl::VirtualGuardImpl(at::kCUDA); }

c10::DeviceIndex index_of(const at::Device& device) {
  return device.has_index() ? device.index() : c10::DeviceIndex{0};
}

at::Device with_index(const std::string& device) {
  const at::Device named(device);
  return {named.type(), index_of(named)};
}

}  // namespace

bool is_cuda(const std::string& device) { return device.rfind("cuda", 0) == 0; }

int device_number(const std::string& device) { return index_of(at::Device(device)); }

std::string torch_device(const std::string& device) {
  return is_cuda(device) ? with_index(device).str() : device;
}

void load_torch_cuda() {
#if ATTNBENCH_TORCH_VERSION >= 211
  static const std::string failure = [] {
    const std::filesystem::path library = cuda_library();
    if (!std::filesystem::exists(library)) return std::string("it has no CUDA part");
    return dlopen(library.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr ? std::string() : dlerror();
  }();
#else
  static const std::string failure = "it is older than 2.11";
#endif
  if (!failure.empty()) throw Error("LibTorch cannot use CUDA: " + failure);
}

void use_device(const std::string& device) {
  if (!is_cuda(device)) return;
  load_torch_cuda();
  const at::Device place = with_index(device);
#if ATTNBENCH_TORCH_VERSION >= 211
  at::globalContext().lazyInitDevice(at::kCUDA);
#endif
  if (index_of(place) >= guard().deviceCount()) {
    throw Error("LibTorch finds " + std::to_string(guard().deviceCount()) +
                " CUDA devices, and no " + device);
  }
  guard().setDevice(place);
  at::globalContext().setAllowTF32CuDNN(false);
}

#if ATTNBENCH_TORCH_VERSION >= 211

void limit_device_memory(std::int64_t limit_bytes, std::int64_t total_bytes) {
  if (limit_bytes <= 0 || limit_bytes >= total_bytes) return;
  // The only access to LibTorch's limit without a CUDA header. The current settings are included,
  // since settings that are not listed return to their defaults.
  const std::string said = c10::CachingAllocator::getAllocatorSettings();
  std::ostringstream settings;
  settings.imbue(std::locale::classic());
  settings << said << (said.empty() ? "" : ",") << "per_process_memory_fraction:" << std::fixed
           << std::setprecision(std::numeric_limits<double>::max_digits10)
           << static_cast<double>(limit_bytes) / static_cast<double>(total_bytes);
  c10::CachingAllocator::setAllocatorSettings(settings.str());
}

void synchronize(const std::string& device) {
  if (is_cuda(device)) at::accelerator::synchronizeDevice(index_of(at::Device(device)));
}

DeviceMemory device_memory(const std::string& device) {
  const c10::DeviceIndex index = index_of(at::Device(device));
  constexpr auto all = static_cast<std::size_t>(c10::CachingAllocator::StatType::AGGREGATE);
  const auto statistics = at::accelerator::getDeviceStats(index);
  DeviceMemory memory;
  memory.live = statistics.allocated_bytes.at(all).current;
  memory.peak = statistics.allocated_bytes.at(all).peak;
  memory.peak_reserved = statistics.reserved_bytes.at(all).peak;
  return memory;
}

void reset_peak_memory(const std::string& device) {
  at::accelerator::resetPeakStats(index_of(at::Device(device)));
}

kernels::cuda::Stream current_stream(const at::Device& device) {
  return {guard().getStream(device).native_handle()};
}

#else

void limit_device_memory(std::int64_t, std::int64_t) {}

void synchronize(const std::string&) {}

DeviceMemory device_memory(const std::string&) { return {}; }

void reset_peak_memory(const std::string&) {}

kernels::cuda::Stream current_stream(const at::Device&) { return {}; }

#endif

SideStream::SideStream(const std::string& device)
    : before_(guard().exchangeStream(
          guard().getStreamFromGlobalPool(with_index(device), /*isHighPriority=*/false))) {}

SideStream::~SideStream() { guard().exchangeStream(before_); }

}  // namespace attnbench
