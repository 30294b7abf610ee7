#include "harness/worker/taking.hpp"

#include "attention/torch_cuda.hpp"
#include "harness/measure/device.hpp"

namespace attnbench::worker {

void take_device(const std::string& device) {
  measure::usable_device(device).select(measure::device_index(device));
  use_device(device);
}

}  // namespace attnbench::worker
