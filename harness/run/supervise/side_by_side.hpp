// SideBySide: pieces of work shared out to several threads, until one of them fails.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <optional>

namespace attnbench::run {

class SideBySide {
 public:
  /// Pieces 0 to `pieces` - 1.
  explicit SideBySide(std::size_t pieces) : pieces_(pieces) {}

  /// The next piece that nobody has; nothing where none is left or a lane has failed.
  std::optional<std::size_t> next();
  /// Whether a lane has failed: those at work had better stop.
  bool failed() const { return failed_; }

  /// Runs `lane` on as many threads and waits for all. Then throws what the first that failed
  /// threw, if one did.
  void run(std::size_t lanes, const std::function<void()>& lane);

 private:
  const std::size_t pieces_;
  std::mutex mutex_;
  std::size_t begun_ = 0;
  std::atomic<bool> failed_{false};
  std::exception_ptr failure_;
};

}  // namespace attnbench::run
