// The meter of tensors on a device that has memory of its own.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tasks/task.hpp"

namespace attnbench::worker {

/// Counts what LibTorch's caching allocator hands out on `device`, in its blocks of 512 bytes.
class DeviceMeter final : public tasks::MemoryMeter {
 public:
  DeviceMeter(std::string device, std::int64_t limit_bytes);
  std::int64_t live_bytes() const override;
  std::int64_t peak_bytes() const override;
  void reset_peak() override;
  std::int64_t limit_bytes() const override { return limit_bytes_; }

  /// {tensor_peak_bytes, reserved_peak_bytes, used_bytes}: tensors since the last reset, the same
  /// with what the allocator keeps for later, and what the device says is in use by all processes.
  tasks::Json to_json() const;

 private:
  std::string device_;
  std::int64_t limit_bytes_;
};

}  // namespace attnbench::worker
