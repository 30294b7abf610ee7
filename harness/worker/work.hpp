// What the children of the worker do: one function for each request, and the task that a request is
// turned into before the child is forked.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "attention/registry.hpp"
#include "core/process/channel.hpp"
#include "core/protocol.hpp"
#include "harness/worker/plugins.hpp"

namespace attnbench::worker {

/// Prepares, checks (in round 0) and measures a cell; a cell that is wrong is not timed. Returns
/// {status, reason, measured}; progress goes through `channel`. Throws what the mechanism, the task
/// or the allocator throw.
Json do_cell(const Loaded& loaded, const protocol::Run& request, process::Channel& channel);

/// Runs the conformance kit. The status is ok; wrong where a property is broken (the first one is
/// the reason); unsupported where the implementation does nothing of this pattern in any of the
/// dtypes. Numbers that are not finite are absent. Throws UsageError for unknown names.
protocol::CheckAnswer check_conformance(const Registry& registry, const protocol::Check& request);

/// Writes the examples that a task learns from. Throws what the task throws.
protocol::DataAnswer write_data(const tasks::TaskTable& tasks, const protocol::Data& request);

/// A request, as far as the worker needs to know it.
struct ChildTask {
  std::string type;  ///< of the request: run, check, probe, apply, data or generate
  protocol::ChildRequest request;
  std::string device = "cpu";
  std::string cell;  ///< id, of run
  int round = 0;
  std::string task;
  std::string mechanism;
  std::string implementation;
  std::string pattern;
  /// What the child does once the device is set up; returns the answer.
  std::function<Json(process::Channel& channel)> work;
};

/// The task of a child that does the request; nothing where no child does such a request. Throws
/// UsageError, naming the place, for a message that is not of its form. `loaded` must outlive the
/// task.
std::optional<ChildTask> child_task(const Json& message, const Loaded& loaded);

}  // namespace attnbench::worker
