// LibTorch's CUDA part: loaded when it is first wanted, and reached through what LibTorch offers
// for every device, so that neither a CUDA header nor a CUDA library is needed to build. This is
// the compatibility place of devices: LibTorch 2.11 is the first whose streams tell their handle.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

/// Whether a device's name is that of a CUDA device: "cuda" or "cuda:N".
bool is_cuda(const std::string& device);
/// The number in a device's name; 0 where there is none.
int device_number(const std::string& device);
/// `device` as LibTorch is told of it, its number said: "cuda:0" for "cuda".
std::string torch_device(const std::string& device);

/// Loads the CUDA part, a second's work, once a process. The driver is not touched: a process that
/// did no more than this may fork. To be called before any tensor, since LibTorch asks only once
/// what parts it has. Throws Error, with the reason, where there is none.
void load_torch_cuda();

/// From use_device on, tensors of a CUDA device may take `limit_bytes` of the `total_bytes` that it
/// has, what LibTorch's caching allocator keeps for later included, which takes from the device in
/// pieces of 2 and 20 MiB; beyond that an allocation throws c10::OutOfMemoryError. No limit where
/// either is 0 or the limit is the larger. To be called once, after load_torch_cuda and before
/// use_device, when the allocators are made.
void limit_device_memory(std::int64_t limit_bytes, std::int64_t total_bytes);

/// Makes `device` this thread's current one, loading what is missing, and makes float32 mean
/// float32 in convolutions, as it does in products. Nothing to do for "cpu". Throws Error where
/// LibTorch finds no such device. A process that called it must not fork children that use the
/// device.
void use_device(const std::string& device);

/// Bytes that tensors take on one device, as LibTorch's caching allocator counts them.
struct DeviceMemory {
  std::int64_t live = 0;
  std::int64_t peak = 0;           ///< since the last reset
  std::int64_t peak_reserved = 0;  ///< likewise, with what the allocator keeps for later
};
DeviceMemory device_memory(const std::string& device);
void reset_peak_memory(const std::string& device);

/// Waits for all work of the device; nothing to do for "cpu".
void synchronize(const std::string& device);

/// Where LibTorch queues the work of `device` in this thread.
kernels::cuda::Stream current_stream(const at::Device& device);

/// While it lives, LibTorch queues this thread's work on a stream of its own, which a graph can be
/// captured on.
class SideStream {
 public:
  explicit SideStream(const std::string& device);
  ~SideStream();
  SideStream(const SideStream&) = delete;
  SideStream& operator=(const SideStream&) = delete;

 private:
  c10::Stream before_;
};

}  // namespace attnbench
