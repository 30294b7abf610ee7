// Child: a forked process that does one piece of work and reports to the worker.
//
// The worker has loaded LibTorch but run nothing with it: a fork costs milliseconds, and the child
// computes with all its threads. After one parallel operation in the worker a child would hang.
//
// A plugin cannot harm more than its child, which has its own process group, floating-point
// environment and memory limit, and none of the worker's sockets. Processes that it leaves behind
// end with it. Messages without the child's seal are refused.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>

#include "core/process/channel.hpp"
#include "harness/worker/status.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

struct ChildSetup {
  std::filesystem::path log;  ///< file of the child's standard outputs; empty = the worker's
  int threads = 1;            ///< of LibTorch
  double limit_seconds = 0;   ///< 0 = none; enforced by the waiting worker
  /// The memory limit of its tensors; see memory_beside_tensors for what is allowed on top. 0 = the
  /// memory available now, for both.
  std::int64_t memory_bytes = 0;
  /// Whether memory is limited: false where a driver maps a device's memory into the process.
  bool limits_memory = true;
};

/// Registers a descriptor of the worker's own, such as its socket: children close it.
void keep_from_children(int descriptor);

/// Memory that a child may allocate (malloc, new) beside `tensor_bytes` of tensors: a quarter of
/// it, at least 2 GiB, plus 128 MiB for each thread's stack and BLAS buffers.
std::int64_t memory_beside_tensors(std::int64_t tensor_bytes, int threads);

class Child {
 public:
  /// What runs in the child; its messages go through the channel. An exception is sent as
  /// {type: failed, status, reason, detail}.
  using Body = std::function<void(process::Channel& to_worker)>;

  /// Forks. The child leads a process group of its own and dies with the worker.
  Child(ChildSetup setup, const Body& body);
  ~Child() { end(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  /// Sends it a message. Throws ChannelError where the child is gone.
  void send(const Json& message) { channel_.send(message); }
  /// The child's next message, waiting up to `seconds` for it; nothing where none came, or where it
  /// ended. Throws ChannelError for a message without the seal.
  std::optional<Json> receive(double seconds);
  /// Whether it has ended and `receive` has nothing more: `outcome` says how.
  bool ended() const { return ended_; }
  /// Becomes readable when there is a message, and when the child ends (-1 = the system cannot).
  int message_descriptor() const { return channel_.descriptor(); }
  int end_descriptor() const { return end_descriptor_; }
  double elapsed_seconds() const;
  bool over_limit() const;

  /// Kills it and all that it started, at once.
  void end();
  /// How the child ended; call it after that.
  Outcome outcome();

 private:
  void notice_end();

  ChildSetup setup_;
  process::Channel channel_;
  pid_t pid_ = -1;
  int end_descriptor_ = -1;
  bool ended_ = false;
  int wait_status_ = 0;
  std::int64_t peak_bytes_ = 0;
  std::int64_t limit_bytes_ = 0;
  std::chrono::steady_clock::time_point begin_;
  long oom_kills_before_ = 0;
};

/// Runs `body` in a child and waits for its messages, each handed to `on_message`; a child that is
/// silent for longer than the setup's limit is ended. Returns how it ended: status ok if it was
/// done. What `on_message` throws ends the child and is thrown on.
Outcome run_child(const ChildSetup& setup, const Child::Body& body,
                  const std::function<void(const Json&)>& on_message);

/// Writes an outcome as {type: failed, status, reason, detail}, and reads it back.
Json to_json(const Outcome& outcome);
Outcome outcome_from(const Json& message);

}  // namespace attnbench::worker
