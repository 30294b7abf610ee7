// The device of a child: setting it up, metering its memory, and recording work as a graph.
#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tasks/task.hpp"

namespace attnbench::worker {

/// Makes `device` ("cpu", "cuda", "cuda:N") the current one of this process; on one with memory of
/// its own, tensors may take `limit_bytes` of that (0 = all). Call it before any other operation.
/// Throws EnvironmentFailure where the device cannot be used, Error where LibTorch cannot use it.
/// The worker itself must never call it: a process that holds a CUDA context cannot fork others
/// that use it.
void setup_device(const std::string& device, std::int64_t limit_bytes = 0);

/// Counts what LibTorch's caching allocator hands out on `device`, in its blocks of 512 bytes.
class DeviceMeter final : public tasks::MemoryMeter {
 public:
  DeviceMeter(std::string device, std::int64_t limit_bytes);
  std::int64_t live_bytes() const override;
  std::int64_t peak_bytes() const override;
  void reset_peak() override;
  std::int64_t limit_bytes() const override { return limit_bytes_; }

  /// The record's numbers {tensor_peak_bytes, reserved_peak_bytes, used_bytes}: tensors since the
  /// last reset, the same with what the allocator keeps for later, and what the device says is in
  /// use by all processes.
  tasks::Json to_json() const;

 private:
  std::string device_;
  std::int64_t limit_bytes_;
};

/// Runs `body` a few times on `device`, `before` (may be empty) ahead of each, records it as a
/// graph and plays it once, so that its time is the device's and not that of launching. Returns
/// what queues the recorded work behind that of the default stream; nothing where it cannot be
/// recorded (it waits for the device, or copies from the host), with the reason in `why`. The
/// memory that the body took belongs to the graph while that lives: allocate nothing else on a side
/// stream meanwhile.
std::function<void()> recorded(const std::string& device, const std::function<void()>& body,
                               const std::function<void()>& before, std::string& why);

}  // namespace attnbench::worker
