#include "harness/worker/device_setup.hpp"

#include <nlohmann/json.hpp>

#include "attention/torch/cuda.hpp"
#include "harness/measure/device.hpp"

namespace attnbench::worker {

void take_device(const std::string& device, std::int64_t limit_bytes) {
  const measure::Device& kind = measure::usable_device(device);
  const int index = measure::device_index(device);
  kind.select(index);
  if (is_cuda(device)) {
    load_torch_cuda();  // it takes the limit
    limit_device_memory(limit_bytes, kind.card(index).value("memory_bytes", std::int64_t{0}));
  }
  use_device(device);
}

}  // namespace attnbench::worker
