// Counts what this thread's tensors take while it lives, through LibTorch's own reporting hook.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "attention/torch/torch.hpp"

namespace attnbench::test {

class MemoryCount {
 public:
  MemoryCount()
      : counter_(std::make_shared<Counter>()),
        guard_(c10::DebugInfoKind::PROFILER_STATE, counter_) {}

  /// Bytes allocated and not freed since the count began, and the most there were at once.
  std::int64_t live() const { return counter_->live; }
  std::int64_t peak() const { return counter_->peak; }

 private:
  struct Counter : c10::MemoryReportingInfoBase {
    bool memoryProfilingEnabled() const override { return true; }
    // One of the two overrides, depending on LibTorch's version.
    void reportMemoryUsage(void*, std::int64_t bytes, std::int64_t, std::int64_t, c10::Device) {
      add(bytes);
    }
    void reportMemoryUsage(void*, std::int64_t bytes, std::size_t, std::size_t, c10::Device) {
      add(bytes);
    }
    void add(std::int64_t bytes) {
      live += bytes;
      peak = std::max(peak, live);
    }
    std::int64_t live = 0;
    std::int64_t peak = 0;
  };

  std::shared_ptr<Counter> counter_;
  c10::DebugInfoGuard guard_;
};

}  // namespace attnbench::test
