// The counting CPU allocator: counts the bytes of tensors, and throws beyond a limit.
#pragma once

#include <cstdint>
#include <new>
#include <string>

#include "tasks/task.hpp"

namespace attnbench::worker {

/// Thrown by an allocation that would pass the limit, or that the system refuses.
class OutOfMemory : public std::bad_alloc {
 public:
  OutOfMemory(std::int64_t wanted_bytes, std::int64_t live_bytes, std::int64_t limit_bytes);
  const char* what() const noexcept override { return message_.c_str(); }

 private:
  std::string message_;
};

/// Makes every CPU tensor allocated from now on a counted one. Call once, before the first tensor;
/// tensors made before are freed as they were made, and are not counted.
void install_counting_allocator();

/// Bytes of tensors beyond which an allocation throws OutOfMemory; 0 = no limit.
void set_memory_limit(std::int64_t bytes);

/// The meter of the process. Counts what tensors asked for, whatever thread did; the buffers that
/// OpenBLAS and oneDNN keep for themselves do not come from here and are not seen.
tasks::MemoryMeter& cpu_memory();

}  // namespace attnbench::worker
