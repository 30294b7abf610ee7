// Worker: the process between supervisor and children. Loads everything that can be measured and
// runs none of it itself.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "core/process/channel.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/plugins.hpp"
#include "harness/worker/work.hpp"

namespace attnbench::worker {

class Worker {
 public:
  /// `supervisor` is a connected socket; children close it.
  explicit Worker(process::Channel supervisor);

  /// Answers until the supervisor says bye or is gone; then ends a child that still runs.
  void serve();

 private:
  /// A child that works on a request, which is answered when it ends.
  struct Job {
    ChildTask task;
    std::string started_at;
    std::unique_ptr<Child> child;
    int heartbeats = 0;
  };

  void wait();
  bool read_requests();
  Json answer(const std::string& type, const Json& request);
  Json hello(const protocol::Hello& request);
  void begin(ChildTask task);
  void watch_child();
  void read_messages();
  void pass_on(const Json& message);
  void finish_done(const Json& done);
  void finish(const Outcome& outcome);
  void finish(protocol::Answer answer);
  void end_job(const Json& answer);

  process::Channel supervisor_;
  Loaded loaded_;
  int threads_ = 1;
  bool greeted_ = false;
  std::optional<Job> job_;
};

}  // namespace attnbench::worker
