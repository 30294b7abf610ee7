// The floating-point environment of a thread: rounding, traps, and whether denormal numbers are
// flushed to zero. Code built with -ffast-math changes it when it is loaded, and threads and
// processes that are started afterwards inherit the change. Does not depend on LibTorch.
#pragma once

#include <cfenv>
#include <cstdint>
#include <string>

namespace attnbench {

/// Saves the calling thread's environment and restores it on destruction.
class FloatingPointGuard {
 public:
  FloatingPointGuard() { std::fegetenv(&saved_); }
  ~FloatingPointGuard() { std::fesetenv(&saved_); }
  FloatingPointGuard(const FloatingPointGuard&) = delete;
  FloatingPointGuard& operator=(const FloatingPointGuard&) = delete;

 private:
  std::fenv_t saved_{};
};

/// While it exists, the calling thread and those that it starts keep denormal numbers, whatever
/// mode a library has set; nothing else of the environment changes.
class KeepDenormals {
 public:
  KeepDenormals();
  ~KeepDenormals();
  KeepDenormals(const KeepDenormals&) = delete;
  KeepDenormals& operator=(const KeepDenormals&) = delete;

 private:
  std::uint64_t before_;  ///< the processor's control register
};

/// Sets the calling thread's environment to a program's default: round to nearest, no traps,
/// denormal numbers kept. Threads started afterwards inherit it.
void reset_floating_point();

/// How the calling thread's environment differs from the default, such as "flush-to-zero on, rounds
/// upward"; empty if it does not. Raised exception flags do not count.
std::string floating_point_changes();

}  // namespace attnbench
