// Child: a forked process that does one piece of work and tells its worker about it.
//
// The worker has loaded LibTorch but run nothing with it, so that a fork costs milliseconds and the
// child computes with all its threads. After one parallel operation in the worker a child would
// hang.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>

#include "harness/run/channel.hpp"
#include "harness/worker/status.hpp"

namespace attnbench::worker {

using run::Json;

struct ChildSetup {
  std::filesystem::path log;    ///< of its standard outputs; empty = the worker's
  int threads = 1;              ///< of LibTorch
  double limit_seconds = 0;     ///< 0 = none; kept by who waits for it
  int private_descriptor = -1;  ///< the worker's own, closed in the child
};

class Child {
 public:
  /// What runs in the child; its messages go through the channel. An exception is sent as
  /// {type: failed, status, reason, detail}.
  using Body = std::function<void(run::Channel& to_worker)>;

  /// Forks. The child leads a process group of its own and dies with the worker.
  Child(ChildSetup setup, const Body& body);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  run::Channel& channel() { return channel_; }
  double elapsed_seconds() const;
  bool over_limit() const;

  /// Kills the group, at once.
  void end();
  /// After its channel ended: waits for it and says what became of it.
  Outcome outcome();

 private:
  ChildSetup setup_;
  run::Channel channel_;
  pid_t pid_ = -1;
  std::chrono::steady_clock::time_point begin_;
  long oom_kills_before_ = 0;
};

/// Runs `body` in a child and waits for its messages, each handed to `on_message`; a child that is
/// silent for longer than the setup's limit is ended. Returns how it ended: status ok if it was
/// done.
Outcome run_child(const ChildSetup& setup, const Child::Body& body,
                  const std::function<void(const Json&)>& on_message);

/// {type: failed, status, reason, detail} and back.
Json to_json(const Outcome& outcome);
Outcome outcome_from(const Json& message);

}  // namespace attnbench::worker
