// Taking a device: what a child does before anything else where its work is not the CPU's.
#pragma once

#include <cstdint>
#include <string>

namespace attnbench::worker {

/// Makes `device` ("cpu", "cuda", "cuda:N") the current one of this process; on one with memory of
/// its own, tensors may take `limit_bytes` of that (0 = all). Throws EnvironmentFailure where it
/// cannot be used, Error where LibTorch cannot use it. The worker itself must never call it: a
/// process that holds a CUDA context cannot fork others that use it.
void take_device(const std::string& device, std::int64_t limit_bytes = 0);

}  // namespace attnbench::worker
