// Measurer: who measures. Holds one worker, starts it again where it died, ends it where the run is
// interrupted, and makes a record of every answer.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "core/protocol.hpp"
#include "core/result/record.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/run/folder/journal.hpp"
#include "harness/program/run/plan/planning.hpp"

namespace attnbench::run {

/// Thrown where the run was interrupted, or where another lane has failed.
struct Cancelled {};

/// What a measurer asks of the run that it belongs to.
struct MeasurerHooks {
  std::function<int()> interrupts;       ///< how many came so far
  std::function<void()> on_cancel = {};  ///< the worker is about to be told to stop
  std::function<bool()> abandoned = {};  ///< another lane has failed
  WorkerClient::OnEvent on_event = {};   ///< heartbeats and progress
};

class Measurer {
 public:
  /// Starts nothing yet.
  Measurer(WorkerOptions options, MeasurerHooks hooks);

  /// Starts the worker if there is none whose threads wait so: OpenMP decides how it waits when it
  /// is loaded. Throws EnvironmentFailure.
  void start(Waiting waiting);
  bool started() const { return client_ != nullptr; }
  Waiting waiting() const { return options_.waiting; }
  /// Ends the worker.
  void stop() { client_.reset(); }

  /// The record of one round, which is of the record's schema and of this cell and round. Where the
  /// worker died, was silent past the limit, refused or answered something else, the record says
  /// so. Nothing where the worker was told to stop and did. Throws Cancelled, and
  /// EnvironmentFailure where the worker cannot be started again.
  std::optional<result::RoundRecord> measure(const Planned& planned, const protocol::Run& request);

  /// The answer to a probe, or why there is none; then the worker is killed. Throws Cancelled.
  struct Probed {
    DeviceProbe answer = {};
    std::string failure = {};
  };
  Probed probe(const protocol::Probe& request);

 private:
  /// The interrupts that a worker was told of, and when.
  struct Told {
    int interrupts = 0;
    std::chrono::steady_clock::time_point since{};
  };

  void on_tick(WorkerClient& client, Told& told);
  Json answer_or_failure(const protocol::Run& request);
  bool was_cancelled(const Json& answer) const;

  WorkerOptions options_;
  MeasurerHooks hooks_;
  std::unique_ptr<WorkerClient> client_;
};

}  // namespace attnbench::run
