#include "harness/worker/worker.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>

#include "attention/plugin/floating_point.hpp"
#include "attention/torch/cuda.hpp"
#include "core/protocol.hpp"
#include "core/result/result_check.hpp"
#include "core/text/format.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/device.hpp"
#include "harness/worker/plan.hpp"

namespace attnbench::worker {
namespace {

constexpr int wait_milliseconds = 100;
/// Bytes of a child's reason and detail; the rest is in its log.
constexpr std::size_t longest_reason = 4000;
constexpr std::size_t longest_detail = 20'000;

/// How the floating-point environment of a thread that computes differs from a fresh program's;
/// empty where none does.
std::string changes_on_any_thread() {
  std::string changes = floating_point_changes();
  std::mutex mutex;
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (changes.empty()) changes = floating_point_changes();
  });
  return changes;
}

/// Such a change affects all arithmetic that follows, including the check.
void refuse_changed_environment(protocol::Answer& answer) {
  if (answer.status != Status::ok && answer.status != Status::wrong) return;
  const std::string changes = changes_on_any_thread();
  if (changes.empty()) return;
  answer.status = Status::wrong;
  answer.reason = "changed the floating-point environment (" + changes +
                  "): it has to be left as it was before the call";
}

bool is_failure(std::optional<Status> status) {
  return status == Status::wrong || status == Status::error || status == Status::crashed ||
         status == Status::timeout;
}

Outcome over_limit(double seconds) {
  return {Status::timeout,
          "no end within " + Json(seconds).dump() + " s, the cell's limit (--cell-timeout)", ""};
}

}  // namespace

Worker::Worker(process::Channel supervisor) : supervisor_(std::move(supervisor)) {
  keep_from_children(supervisor_.descriptor());
}

void Worker::serve() {
  try {
    do {
      wait();
      if (job_) watch_child();
    } while (read_requests());
  } catch (const process::ChannelError&) {
    // The supervisor is gone; ~Job ends the child.
  }
}

void Worker::wait() {
  std::array<pollfd, 3> waiting{
      {{supervisor_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}}};
  if (job_) {
    waiting[1].fd = job_->child->message_descriptor();
    waiting[2].fd = job_->child->end_descriptor();
  }
  poll(waiting.data(), waiting.size(), job_ ? wait_milliseconds : -1);
  if (waiting[0].revents != 0 && !supervisor_.fill()) {
    throw process::ChannelError("the supervisor closed the connection");
  }
  if (job_) read_messages();
}

bool Worker::read_requests() {
  while (const auto request = supervisor_.next()) {
    const std::string type = protocol::type_of(*request);
    if (type == "bye") {
      supervisor_.send({{"type", "bye"}});
      return false;
    }
    if (type == "cancel") {
      if (job_) end_job({{"type", "cancelled"}, {"cell", job_->task.cell}});
      continue;
    }
    try {
      if (auto task = child_task(*request, loaded_)) {
        begin(std::move(*task));
      } else {
        supervisor_.send(answer(type, *request));
      }
    } catch (const process::ChannelError&) {
      throw;
    } catch (const std::exception& error) {
      supervisor_.send({{"type", "error"}, {"message", type + ": " + error.what()}});
    }
  }
  return true;
}

Json Worker::answer(const std::string& type, const Json& request) {
  if (type == "hello") return hello(request.get<protocol::Hello>());
  if (!greeted_) throw UsageError("say hello first");
  if (type == "catalogue") {
    Catalogue all = catalogue_in_child(loaded_);
    add_roles(all, loaded_);
    return all;
  }
  if (type == "plan") {
    return protocol::PlanAnswer{plan(loaded_, request.get<protocol::Plan>().cells)};
  }
  throw UsageError("no such request");
}

Json Worker::hello(const protocol::Hello& request) {
  threads_ = request.threads;
  // Not in every child: it takes a second, and children share what the worker has loaded.
  if (is_cuda(request.device)) load_torch_cuda();
  if (!greeted_) {
    constexpr double patience_seconds = 25;  // less than the supervisor's
    loaded_ = load_all(request.plugins, patience_seconds, [this](const std::string& path) {
      supervisor_.send({{"type", "loading"}, {"plugin", path}});
    });
  }
  greeted_ = true;
  return protocol::HelloAnswer{protocol::version, getpid(), stamp(), loaded_.plugins};
}

void Worker::begin(ChildTask task) {
  if (!greeted_) throw UsageError("say hello first");
  if (job_) throw UsageError("a child is at work");
  const protocol::ChildRequest& request = task.request;
  ChildSetup setup;
  setup.log = request.log;
  setup.threads = request.threads > 0 ? request.threads : threads_;
  setup.limit_seconds = request.limits.seconds;
  setup.memory_bytes = request.limits.memory_bytes;
  setup.limits_memory = !is_cuda(task.device);
  Job job;
  job.started_at = text::now_text();
  job.child = std::make_unique<Child>(setup, [&](process::Channel& channel) {
    setup_device(task.device, request.limits.device_bytes);
    protocol::Answer answer = task.work(channel).get<protocol::Answer>();
    refuse_changed_environment(answer);
    answer.type = "done";
    channel.send(answer);
  });
  job.task = std::move(task);
  job_ = std::move(job);
}

void Worker::read_messages() {
  while (true) {
    std::optional<Json> message;
    try {
      message = job_->child->receive(0);
    } catch (const process::ChannelError& error) {
      return finish(Outcome{Status::crashed, std::string("the child sent ") + error.what(), ""});
    }
    if (!message) break;
    const std::string type = protocol::type_of(*message);
    if (type == "failed") return finish(outcome_from(*message));
    if (type == "done") return finish_done(*message);
    if (type == "progress") pass_on(*message);
  }
  if (job_->child->ended()) finish(job_->child->outcome());
}

/// Forwards the part of progress that is shown; numbers that are not finite arrive as null, and are
/// not shown.
void Worker::pass_on(const Json& message) {
  try {
    auto progress = message.get<protocol::Progress>();
    progress.cell = job_->task.cell;
    progress.what.resize(std::min<std::size_t>(progress.what.size(), 200));
    supervisor_.send(progress);
  } catch (const UsageError&) {
    return;
  }
}

/// Holds the answer to its form here, where a fault costs its own cell only.
void Worker::finish_done(const Json& done) {
  const ChildTask& task = job_->task;
  std::string fault;
  if (task.type == "run") {
    Json record = done;
    record.update({{"cell", task.cell}, {"round", task.round}});
    fault = result::round_fault(record);
  } else {
    fault = result::answer_fault(task.type, done);
  }
  if (fault.empty()) return finish(done.get<protocol::Answer>());
  finish(Outcome{Status::error, "its record is not of the form of one: " + fault, ""});
}

void Worker::watch_child() {
  if (job_->child->over_limit()) return finish(over_limit(job_->task.request.limits.seconds));
  const double elapsed = job_->child->elapsed_seconds();
  if (elapsed < job_->heartbeats + 1) return;
  job_->heartbeats = static_cast<int>(elapsed);
  supervisor_.send(protocol::Heartbeat{job_->task.cell, elapsed});
}

void Worker::finish(const Outcome& outcome) {
  if (job_->task.type == "probe") {
    return end_job({{"type", "error"}, {"message", "probe: " + outcome.reason}});
  }
  protocol::Answer answer;
  answer.status = outcome.status == Status::ok ? Status::error : outcome.status;
  answer.reason = outcome.reason.substr(0, longest_reason);
  answer.detail = outcome.detail.substr(0, longest_detail);
  finish(std::move(answer));
}

void Worker::finish(protocol::Answer answer) {
  const ChildTask& task = job_->task;
  if (is_failure(answer.status)) {
    // An exception names its own line.
    if (answer.status != Status::error) {
      answer.reason = at_place(loaded_, task.mechanism, std::move(answer.reason));
    }
    answer.reason += blame(loaded_, task.mechanism, task.implementation, task.task);
  }
  answer.type = task.type == "run" ? "record" : task.type;
  if (task.type == "run") {
    answer.further.update({{"cell", task.cell},
                           {"round", task.round},
                           {"started_at", job_->started_at},
                           {"wall_seconds", job_->child->elapsed_seconds()}});
  } else if (task.type == "check") {
    answer.further.emplace("properties", Json::array());
    answer.further.emplace("mechanism", task.mechanism);
    if (!task.implementation.empty()) {
      answer.further.emplace("implementation", task.implementation);
    }
    answer.further.emplace("pattern", task.pattern);
  }
  end_job(answer);
}

void Worker::end_job(const Json& answer) {
  job_.reset();  // ends a child that is still there
  supervisor_.send(answer);
}

}  // namespace attnbench::worker
