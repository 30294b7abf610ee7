// Worker: the process between supervisor and children. Knows what there is, runs none of it itself.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "harness/run/worker/channel.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

class Worker {
 public:
  /// Talks through `supervisor`, a connected socket, which no child gets to hold.
  explicit Worker(run::Channel supervisor);

  /// Answers until the other end says bye or is gone; children at work then are ended.
  void serve();

 private:
  /// A child at work for a request that is answered when it ends.
  struct Job {
    Json request;
    std::string started_at;
    std::unique_ptr<Child> child;
    int heartbeats = 0;
  };

  void wait();
  bool take_requests();
  Json answer(const std::string& type, const Json& request);
  Json hello(const Json& request);
  void begin(const std::string& type, const Json& request);
  void watch_child();
  void take_messages();
  void pass_on(const Json& progress);
  void finish_done(const Json& done);
  void finish(const Outcome& outcome);
  void finish(Json result);

  run::Channel supervisor_;
  Loaded loaded_;
  int threads_ = 1;
  bool greeted_ = false;
  std::optional<Job> job_;
};

}  // namespace attnbench::worker
