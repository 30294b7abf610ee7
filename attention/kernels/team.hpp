// ThreadTeam: the threads that the caller lends to a kernel. Kernels start none of their own.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

namespace attnbench::kernels {

class ThreadTeam {
 public:
  virtual ~ThreadTeam() = default;
  /// The greatest number of workers that may run at once; decides the size of workspaces.
  virtual int size() const = 0;
  /// Calls `body(worker)` once for each worker in [0, size()) and returns when all have returned.
  /// They may run one after the other. `body` must not throw.
  virtual void run(const std::function<void(int)>& body) = 0;
};

/// The calling thread alone.
class SerialTeam : public ThreadTeam {
 public:
  int size() const override { return 1; }
  void run(const std::function<void(int)>& body) override { body(0); }
};

/// Calls `body(worker, item)` for each item in [0, items), handed out in rising order to whichever
/// worker is free: put the longest first. What a worker computes must depend on the item alone, so
/// that results are the same bits whoever computes them.
template <class Body>
void share(ThreadTeam& team, std::int64_t items, const Body& body) {
  std::atomic<std::int64_t> next{0};
  team.run([&](int worker) {
    for (std::int64_t item = next++; item < items; item = next++) body(worker, item);
  });
}

}  // namespace attnbench::kernels
