// The floating-point environment of a thread: rounding, traps, and whether denormal numbers are
// flushed to zero. Code built with -ffast-math changes it when it is loaded, and every thread and
// process that is started afterwards inherits the change. Free of LibTorch.
#pragma once

#include <cfenv>
#include <string>

namespace attnbench {

/// Restores the calling thread's environment, as it was at construction.
class FloatingPointGuard {
 public:
  FloatingPointGuard() { std::fegetenv(&saved_); }
  ~FloatingPointGuard() { std::fesetenv(&saved_); }
  FloatingPointGuard(const FloatingPointGuard&) = delete;
  FloatingPointGuard& operator=(const FloatingPointGuard&) = delete;

 private:
  std::fenv_t saved_{};
};

/// Gives the calling thread the environment that a program starts with: round to nearest, no traps,
/// denormal numbers kept. Threads started from now on inherit it.
void reset_floating_point();

/// How the calling thread's environment differs from that one, such as "flush-to-zero on, rounds
/// upward"; empty where it does not. Flags that operations raised are no difference.
std::string floating_point_changes();

}  // namespace attnbench
