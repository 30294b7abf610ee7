#include "harness/worker/worker.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <mutex>
#include <nlohmann/json.hpp>

#include "attention/plugin/floating_point.hpp"
#include "attention/torch/cuda.hpp"
#include "core/process/python_word.hpp"
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

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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

Worker::Worker(process::Channel supervisor, Loaded loaded, int threads)
    : Worker(std::move(supervisor)) {
  loaded_ = std::move(loaded);
  threads_ = threads;
  greeted_ = true;
  hosts_python_ = true;
}

void Worker::serve() {
  try {
    do {
      wait();
      if (job_ && job_->child) watch_child();
    } while (read_requests());
  } catch (const process::ChannelError&) {
    // The supervisor is gone; ~Job ends the child.
  }
}

void Worker::wait() {
  std::array<pollfd, 3> waiting{
      {{supervisor_.descriptor(), POLLIN, 0}, {-1, POLLIN, 0}, {-1, POLLIN, 0}}};
  if (job_) {
    const Child& working = job_->child ? *job_->child : python_->process();
    waiting[1].fd = working.message_descriptor();
    waiting[2].fd = working.end_descriptor();
  }
  poll(waiting.data(), waiting.size(), job_ ? wait_milliseconds : -1);
  if (waiting[0].revents != 0 && !supervisor_.fill()) {
    throw process::ChannelError("the supervisor closed the connection");
  }
  if (job_ && job_->child) read_messages();
  if (job_ && !job_->child) read_python();
}

bool Worker::read_requests() {
  while (const auto request = supervisor_.next()) {
    const std::string type = protocol::type_of(*request);
    if (type == "bye") {
      supervisor_.send({{"type", "bye"}});
      return false;
    }
    if (type == "cancel") {
      if (job_ && !job_->child) {
        python_->process().send(*request);
      } else if (job_) {
        end_job({{"type", "cancelled"}, {"cell", job_->task.cell}});
      }
      continue;
    }
    try {
      if (auto task = child_task(*request, loaded_)) {
        begin(std::move(*task), *request);
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
    return protocol::PlanAnswer{planned(request.get<protocol::Plan>().cells)};
  }
  // Of a PythonHost.
  if (type == "declarations") {
    const auto plugins = python_plugins(request.at("words").get<std::vector<std::string>>(),
                                        request.at("limit_seconds").get<double>(),
                                        [this](const std::string& word) { say_loading(word); });
    return {{"type", type}, {"plugins", plugins}};
  }
  if (type == "load") {
    loaded_ = load_all(request.at("paths").get<std::vector<std::string>>(),
                       request.at("plugins").get<std::vector<PythonPlugin>>());
    return {{"type", type}};
  }
  throw UsageError("no such request");
}

Json Worker::hello(const protocol::Hello& request) {
  threads_ = request.threads;
  // Not in every child: it takes a second, and children share what the worker has loaded.
  if (is_cuda(request.device)) load_torch_cuda();
  if (!greeted_) loaded_ = load(request.plugins);
  greeted_ = true;
  return protocol::HelloAnswer{protocol::version, getpid(), stamp(), loaded_.plugins};
}

Loaded Worker::load(const std::vector<std::string>& paths) {
  constexpr double patience_seconds = 25;  // less than the supervisor's
  const auto announce = [this](const std::string& path) { say_loading(path); };
  auto in_python = remembered_plugins(paths);
  if (!in_python) {
    try {
      in_python = python().declarations(paths, patience_seconds, announce);
    } catch (const process::ChannelError&) {
      python_.reset();  // a child for each word says more of what is wrong
      in_python = python_plugins(paths, patience_seconds, announce);
    }
  }
  Loaded loaded = load_all(paths, *in_python, patience_seconds, announce);
  if (!python_) return loaded;
  std::vector<std::string> sound;
  for (const PluginSpec& plugin : loaded.plugins) {
    if (process::is_python(plugin.path) || plugin.status == "ok") sound.push_back(plugin.path);
  }
  try {
    python_->load(sound, *in_python);
  } catch (const process::ChannelError&) {
    python_.reset();  // the next one is forked with all that is loaded
  }
  return loaded;
}

bool Worker::runs_in_python(const std::string& mechanism) const {
  const auto found = loaded_.python.find(mechanism);
  return found != loaded_.python.end() && found->second.outcome.status == Status::ok;
}

PythonHost& Worker::python() {
  if (!python_) python_ = std::make_unique<PythonHost>(loaded_, threads_);
  return *python_;
}

void Worker::say_loading(const std::string& plugin) {
  supervisor_.send({{"type", "loading"}, {"plugin", plugin}});
}

/// Cells in Python are planned where they run.
std::vector<Forecast> Worker::planned(const std::vector<Cell>& cells) {
  std::vector<Cell> here, in_python;
  for (const Cell& cell : cells) {
    (runs_in_python(cell.mechanism) ? in_python : here).push_back(cell);
  }
  if (hosts_python_ || in_python.empty()) return plan(loaded_, cells);
  std::vector<Forecast> there;
  try {
    there = python().plan(in_python);
  } catch (const process::ChannelError&) {
    python_.reset();
    return plan(loaded_, cells);
  }
  std::vector<Forecast> ours = plan(loaded_, here);
  std::vector<Forecast> all;
  auto next = ours.begin();
  auto next_there = there.begin();
  for (const Cell& cell : cells) {
    all.push_back(std::move(*(runs_in_python(cell.mechanism) ? next_there++ : next++)));
  }
  return all;
}

void Worker::begin(ChildTask task, const Json& request) {
  if (!greeted_) throw UsageError("say hello first");
  if (job_) throw UsageError("a child is at work");
  Job job;
  job.started_at = text::now_text();
  if (!hosts_python_ && runs_in_python(task.mechanism)) {
    python().process().send(request);
  } else {
    job.child = start(task);
  }
  job.task = std::move(task);
  job_ = std::move(job);
}

std::unique_ptr<Child> Worker::start(const ChildTask& task) {
  const protocol::ChildRequest& request = task.request;
  ChildSetup setup;
  setup.log = request.log;
  setup.threads = request.threads > 0 ? request.threads : threads_;
  setup.limit_seconds = request.limits.seconds;
  setup.memory_bytes = request.limits.memory_bytes;
  setup.limits_memory = !is_cuda(task.device);
  return std::make_unique<Child>(setup, [&](process::Channel& channel) {
    setup_device(task.device, request.limits.device_bytes);
    protocol::Answer answer = task.work(channel).get<protocol::Answer>();
    refuse_changed_environment(answer);
    answer.type = "done";
    channel.send(answer);
  });
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

/// Forwards what the host of Python says; its answer ends the job.
void Worker::read_python() {
  while (const auto message = python_->process().receive(0)) {
    const std::string type = protocol::type_of(*message);
    if (type != "heartbeat" && type != "progress") return end_job(*message);
    supervisor_.send(*message);
  }
  if (!python_->process().ended()) return;
  const Outcome outcome = python_->process().outcome();
  python_.reset();
  finish(outcome);
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
                           {"wall_seconds", seconds_since(job_->begin)}});
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
