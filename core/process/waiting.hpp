// Waiting for a condition in a form that wheels can have.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace attnbench::process {

/// condition.wait(lock, holds). That function itself has the symbol version GLIBCXX_3.4.30, by
/// which a wheel would need the libstdc++ of GCC 12; the waits with a limit are inline.
template <class Holds>
void wait_until(std::condition_variable& condition, std::unique_lock<std::mutex>& lock,
                const Holds& holds) {
  while (!condition.wait_for(lock, std::chrono::hours(1), holds)) {
  }
}

}  // namespace attnbench::process
