// Replay: a short body recorded as a graph, so that its time is the device's and not that of
// launching.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace attnbench::worker {

class Replay {
 public:
  /// Runs `body` a few times and records it. Null where it cannot be recorded (it waits for the
  /// device, or copies from the host), with the reason in `why`. The memory that the body used is
  /// the graph's while the graph lives: nothing else may be allocated on a side stream meanwhile.
  static std::unique_ptr<Replay> of(const std::string& device, const std::function<void()>& body,
                                    std::string& why);
  ~Replay();
  Replay(const Replay&) = delete;
  Replay& operator=(const Replay&) = delete;

  /// Queues the recorded work behind that of the default stream.
  void launch() const;

 private:
  struct Recorded;
  explicit Replay(std::unique_ptr<Recorded> recorded);
  std::unique_ptr<Recorded> recorded_;
};

}  // namespace attnbench::worker
