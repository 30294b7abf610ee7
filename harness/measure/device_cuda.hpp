// A CUDA device as a measured device, without LibTorch: its clock, its ceilings, its memory.
#pragma once

#include <memory>

#include "harness/measure/device.hpp"

namespace attnbench::measure {

/// The stopwatch times by events in the default stream's work, and empties the second-level cache
/// before every body: what is read was not read a moment ago.
std::unique_ptr<Device> device_cuda();

}  // namespace attnbench::measure
