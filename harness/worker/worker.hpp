// Worker: the process between supervisor and children. Loads everything that can be measured and
// runs none of it itself.
#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "core/process/channel.hpp"
#include "harness/worker/child.hpp"
#include "harness/worker/plugins.hpp"
#include "harness/worker/python_host.hpp"
#include "harness/worker/work.hpp"

namespace attnbench::worker {

class Worker {
 public:
  /// `supervisor` is a connected socket; children close it.
  explicit Worker(process::Channel supervisor);
  /// One that the worker itself supervises, a PythonHost, with what is loaded already.
  Worker(process::Channel supervisor, Loaded loaded, int threads);

  /// Answers until the supervisor says bye or is gone; then ends a child that still runs.
  void serve();

 private:
  /// A child that works on a request, which is answered when it ends; or the host of Python, which
  /// has a child for it and answers itself.
  struct Job {
    ChildTask task;
    std::string started_at;
    std::unique_ptr<Child> child;  ///< null where the host does it
    int heartbeats = 0;
    std::chrono::steady_clock::time_point begin = std::chrono::steady_clock::now();
  };

  void wait();
  bool read_requests();
  Json answer(const std::string& type, const Json& request);
  Json hello(const protocol::Hello& request);
  Loaded load(const std::vector<std::string>& paths);
  std::vector<Forecast> planned(const std::vector<Cell>& cells);
  void say_loading(const std::string& plugin);
  bool runs_in_python(const std::string& mechanism) const;
  PythonHost& python();
  void begin(ChildTask task, const Json& request);
  std::unique_ptr<Child> start(const ChildTask& task);
  void watch_child();
  void read_messages();
  void read_python();
  void pass_on(const Json& message);
  void finish_done(const Json& done);
  void finish(const Outcome& outcome);
  void finish(protocol::Answer answer);
  void end_job(const Json& answer);

  process::Channel supervisor_;
  Loaded loaded_;
  int threads_ = 1;
  bool greeted_ = false;
  bool hosts_python_ = false;           ///< this process is a PythonHost
  std::unique_ptr<PythonHost> python_;  ///< null until something in Python is asked for
  std::optional<Job> job_;
};

}  // namespace attnbench::worker
