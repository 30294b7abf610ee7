#include "harness/worker/device_meter.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "attention/torch/cuda.hpp"

namespace attnbench::worker {

DeviceMeter::DeviceMeter(std::string device, std::int64_t limit_bytes)
    : device_(std::move(device)), limit_bytes_(limit_bytes) {}

std::int64_t DeviceMeter::live_bytes() const { return device_memory(device_).live; }

std::int64_t DeviceMeter::peak_bytes() const { return device_memory(device_).peak; }

void DeviceMeter::reset_peak() { reset_peak_memory(device_); }

tasks::Json DeviceMeter::to_json() const {
  const DeviceMemory memory = device_memory(device_);
  tasks::Json out = {{"tensor_peak_bytes", memory.peak},
                     {"reserved_peak_bytes", memory.peak_reserved}};
#ifdef ATTNBENCH_CUDA_KERNELS
  out["used_bytes"] = kernels::cuda::used_memory();
#endif
  return out;
}

}  // namespace attnbench::worker
