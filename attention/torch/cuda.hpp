// LibTorch's CUDA library: loaded on first use, and called through LibTorch's device-independent
// functions, so that building needs neither CUDA headers nor CUDA libraries. It hides differences
// between versions: LibTorch 2.11 is the first whose streams give their native handle.
#pragma once

#include <cstdint>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

/// Whether a device's name is "cuda" or "cuda:N".
bool is_cuda(const std::string& device);
/// The number in a device's name; 0 if there is none.
int device_number(const std::string& device);
/// `device` with its number, as LibTorch expects it: "cuda:0" for "cuda".
std::string torch_device(const std::string& device);

/// Loads the CUDA library, once per process; it takes about a second. It does not initialise the
/// driver, so that the process may still fork. Call it before creating any tensor, since LibTorch
/// checks only once which libraries it has. Throws Error with the reason if there is none.
void load_torch_cuda();

/// Limits the tensors of a CUDA device to `limit_bytes` of its `total_bytes`, including the cache
/// of LibTorch's caching allocator, which allocates in pieces of 2 and 20 MiB; beyond that an
/// allocation throws c10::OutOfMemoryError. No limit if either is 0 or the limit is larger. Call it
/// once, after load_torch_cuda and before use_device, which creates the allocators.
void limit_device_memory(std::int64_t limit_bytes, std::int64_t total_bytes);

/// Makes `device` current in this thread, loads the CUDA library if needed, and disables TF32 in
/// convolutions, as it is in products. Does nothing for "cpu". Throws Error if LibTorch finds no
/// such device. A process that called it must not fork children that use the device.
void use_device(const std::string& device);

/// Bytes of the tensors on one device, as counted by LibTorch's caching allocator.
struct DeviceMemory {
  std::int64_t live = 0;
  std::int64_t peak = 0;           ///< since the last reset
  std::int64_t peak_reserved = 0;  ///< likewise, with the allocator's cache
};
DeviceMemory device_memory(const std::string& device);
void reset_peak_memory(const std::string& device);

/// Waits for all work of the device; does nothing for "cpu".
void synchronize(const std::string& device);

/// The stream where LibTorch queues this thread's work on `device`.
kernels::cuda::Stream current_stream(const at::Device& device);

/// While it exists, LibTorch queues this thread's work on a separate stream, on which a graph can
/// be captured.
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
