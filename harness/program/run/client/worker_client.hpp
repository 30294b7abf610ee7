// WorkerClient: the supervisor's end of the worker. Starts it, exchanges messages, notices its
// death.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/failure.hpp"
#include "core/process/channel.hpp"
#include "core/protocol.hpp"
#include "harness/program/run/client/loading_line.hpp"
#include "harness/program/run/client/worker_environment.hpp"

namespace attnbench::run {

struct WorkerOptions {
  std::vector<std::string> plugins;
  int threads = 0;  ///< 0 = one for each core we may use
  std::string device = "cpu";
  bool keep_blas_core = false;  ///< leave OPENBLAS_CORETYPE in its environment
  std::string blas_core;        ///< OPENBLAS_CORETYPE in its place; empty = none
  Waiting waiting = Waiting::active;
  /// The time limit from one plugin to the next, while the worker starts: it gives up on each of
  /// them itself before that.
  double step_limit_seconds = 30;
  std::filesystem::path log;      ///< of the worker's outputs; empty = a file without a name
  std::filesystem::path program;  ///< empty = attnbench-worker beside the running program
};

/// Thrown where the worker ended while we waited for an answer; `what()` says how and shows the
/// log's last line.
class WorkerDied : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown where no answer came in time. The worker still runs: kill or restart it.
class WorkerSilent : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Thrown where the worker understood the request and could not do it.
class WorkerRefused : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class WorkerClient {
 public:
  /// Heartbeats and progress, as protocol.hpp has them.
  using OnEvent = std::function<void(const Json&)>;

  /// Starts nothing yet.
  explicit WorkerClient(WorkerOptions options);
  /// Sends bye; a worker that does not end is killed.
  ~WorkerClient();
  WorkerClient(const WorkerClient&) = delete;
  WorkerClient& operator=(const WorkerClient&) = delete;

  /// Sends `message` (its "type" is the request's name) and returns the answer, starting the worker
  /// if there is none. `seconds` 0 = as long as it takes.
  /// Throws WorkerDied, WorkerSilent, WorkerRefused; EnvironmentFailure if it cannot be started.
  Json request(const Json& message, const OnEvent& on_event = {}, double seconds = 0);
  /// Sends `message` and waits for nothing; a worker that is gone is not an error here.
  void tell(const Json& message);
  /// Sets a function that is called several times a second, and after each signal, while a request
  /// waits.
  void on_tick(std::function<void()> tick) { tick_ = std::move(tick); }

  /// Starts it if it does not run, a second time where it was killed meanwhile. Throws
  /// EnvironmentFailure naming the program and the reason.
  void start();
  bool running() const { return pid_ > 0; }
  /// Ends it and what it started, at once.
  void kill();
  pid_t pid() const { return pid_; }
  /// The worker's answer to hello: stamp, and the status of each plugin.
  const protocol::HelloAnswer& hello() const { return hello_; }

 private:
  void spawn(process::Channel theirs);
  void handshake();
  std::string bury();
  void forget();
  std::string log_tail() const;
  /// Takes what a starting worker says before it answers hello; throws WorkerSilent where it says
  /// too much or nothing for too long.
  void note_start(const std::optional<Json>& message);
  std::string while_loading() const;

  WorkerOptions options_;
  int own_log_ = -1;
  process::Channel channel_;
  pid_t pid_ = -1;
  bool greeted_ = false;  ///< it answered hello
  bool killed_ = false;   ///< the last one ended by a signal
  std::string loading_;   ///< the plugin that it named last, before its answer to hello
  std::size_t steps_ = 0;
  std::chrono::steady_clock::time_point step_begin_;
  LoadingLine loading_line_;
  protocol::HelloAnswer hello_;
  std::function<void()> tick_;
};

}  // namespace attnbench::run
