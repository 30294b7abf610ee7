// The CPU as a measured device: its clock and ceilings, and where its threads may run.
#pragma once

#include <memory>
#include <vector>

#include "harness/measure/device.hpp"

namespace attnbench::measure {

std::unique_ptr<Device> device_cpu();

/// The CPUs this thread may run on, in order.
std::vector<int> allowed_cpus();

/// Keeps this process, and threads it will start, on `threads` of its allowed CPUs, beginning with
/// the one it runs on now, and returns them. Does nothing where all of them are wanted, or more.
/// To be called before the first parallel operation, since threads inherit it when they start.
std::vector<int> pin_to_cpus(int threads);

}  // namespace attnbench::measure
