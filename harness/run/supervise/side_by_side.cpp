#include "harness/run/supervise/side_by_side.hpp"

#include <thread>
#include <vector>

namespace attnbench::run {

std::optional<std::size_t> SideBySide::next() {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (failed_ || begun_ == pieces_) return std::nullopt;
  return begun_++;
}

void SideBySide::run(std::size_t lanes, const std::function<void()>& lane) {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < lanes; ++i) {
    threads.emplace_back([this, &lane] {
      try {
        lane();
      } catch (...) {
        const std::lock_guard<std::mutex> lock(mutex_);
        if (!failed_) failure_ = std::current_exception();
        failed_ = true;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace attnbench::run
