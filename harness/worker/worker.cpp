#include "harness/worker/worker.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <ctime>
#include <mutex>
#include <nlohmann/json.hpp>

#include "attention/plugin/floating_point.hpp"
#include "attention/torch/cuda.hpp"
#include "core/schema/result_check.hpp"
#include "core/protocol.hpp"
#include "harness/worker/apply.hpp"
#include "harness/worker/catalogue.hpp"
#include "harness/worker/check.hpp"
#include "harness/worker/data.hpp"
#include "harness/worker/plan.hpp"
#include "harness/worker/probe.hpp"
#include "harness/worker/roles.hpp"
#include "harness/worker/device_setup.hpp"
#include "harness/worker/work.hpp"

namespace attnbench::worker {
namespace {

constexpr int wait_milliseconds = 100;
/// Of what a child says in words; its log is there for the rest.
constexpr std::size_t longest_reason = 4000;
constexpr std::size_t longest_detail = 20'000;

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::string cell_id(const Json& request) {
  return request.contains("cell") ? request.at("cell").value("id", "") : "";
}

std::string device_of(const Json& request) {
  const Json& from = request.contains("cell") ? request.at("cell") : request;
  return from.value("device", "cpu");
}

/// What the child does for a request, and what it answers with.
Json do_request(const std::string& type, const Loaded& loaded, const Json& request,
                run::Channel& channel) {
  const Json limits = request.value("limits", Json::object());
  take_device(device_of(request), limits.value("device_bytes", std::int64_t{0}));
  if (type == "apply") return apply_in_child(loaded.registry, request);
  if (type == "check") return check_in_child(loaded.registry, request);
  if (type == "probe") return probe_in_child(request);
  if (type == "data") return write_data_in_child(loaded.tasks, request);
  return do_cell(loaded, request, channel);
}

/// How the environment of any thread that computes differs from that of a fresh program; empty
/// where none does.
std::string changes_on_any_thread() {
  std::string changes = floating_point_changes();
  std::mutex mutex;
  at::parallel_for(0, at::get_num_threads(), 1, [&](std::int64_t, std::int64_t) {
    const std::lock_guard<std::mutex> lock(mutex);
    if (changes.empty()) changes = floating_point_changes();
  });
  return changes;
}

/// What comes after such a change is computed by other rules, the check included, whatever it says.
void refuse_changed_environment(Json& result) {
  const std::string status = result.value("status", "");
  if (status != "ok" && status != "wrong") return;
  const std::string changes = changes_on_any_thread();
  if (changes.empty()) return;
  result["status"] = "wrong";
  result["reason"] = "changed the floating-point environment (" + changes +
                     "): it has to be left as it was before the call";
}

bool is_failure(const Json& result) {
  const std::string status = result.value("status", "");
  return status == "wrong" || status == "error" || status == "crashed" || status == "timeout";
}

Outcome over_limit(const Json& request) {
  const double seconds = request.at("limits").at("seconds");
  return {result::Status::timeout,
          "no end within " + Json(seconds).dump() + " s, the cell's limit (--cell-timeout)", ""};
}

}  // namespace

Worker::Worker(run::Channel supervisor) : supervisor_(std::move(supervisor)) {
  keep_from_children(supervisor_.descriptor());
}

void Worker::serve() {
  try {
    do {
      wait();
      if (job_) watch_child();
    } while (take_requests());
  } catch (const run::ChannelError&) {
    // The supervisor is gone, and so is the reason for everything here; ~Job ends the child.
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
    throw run::ChannelError("the supervisor closed the connection");
  }
  if (job_) take_messages();
}

bool Worker::take_requests() {
  while (const auto request = supervisor_.next()) {
    const std::string type = request->value("type", "");
    if (type == "bye") {
      supervisor_.send({{"type", "bye"}});
      return false;
    }
    if (type == "cancel") {
      if (job_) finish(Json{{"type", "cancelled"}, {"cell", cell_id(job_->request)}});
      continue;
    }
    try {
      if (type == "run" || type == "check" || type == "probe" || type == "apply" ||
          type == "data") {
        begin(type, *request);
      } else {
        supervisor_.send(answer(type, *request));
      }
    } catch (const run::ChannelError&) {
      throw;
    } catch (const std::exception& error) {
      supervisor_.send({{"type", "error"}, {"message", type + ": " + error.what()}});
    }
  }
  return true;
}

Json Worker::answer(const std::string& type, const Json& request) {
  if (type == "hello") return hello(request);
  if (!greeted_) throw UsageError("say hello first");
  if (type == "catalogue") {
    Json told = catalogue_in_child(loaded_);
    add_roles(told, loaded_);
    return told;
  }
  if (type == "plan") return plan(loaded_, request.at("cells"));
  throw UsageError("no such request");
}

Json Worker::hello(const Json& request) {
  threads_ = request.value("threads", 1);
  // Here rather than in every child: it takes a second, and only then do children share it.
  if (is_cuda(request.value("device", "cpu"))) load_torch_cuda();
  if (!greeted_) loaded_ = load_all(request.value("plugins", std::vector<std::string>{}));
  greeted_ = true;
  return {{"type", "hello"},
          {"protocol", run::protocol_version},
          {"pid", getpid()},
          {"stamp", stamp()},
          {"plugins", loaded_.plugins}};
}

void Worker::begin(const std::string& type, const Json& request) {
  if (!greeted_) throw UsageError("say hello first");
  if (job_) throw UsageError("a child is at work");
  ChildSetup setup;
  setup.log = request.value("log", "");
  setup.threads = request.value("threads", threads_);
  const Json limits = request.value("limits", Json::object());
  setup.limit_seconds = limits.value("seconds", 0.0);
  setup.memory_bytes = limits.value("memory_bytes", std::int64_t{0});
  setup.limits_memory = !is_cuda(device_of(request));
  Job job;
  job.request = request;
  job.started_at = now_text();
  job.child = std::make_unique<Child>(setup, [&](run::Channel& channel) {
    Json result = do_request(type, loaded_, request, channel);
    refuse_changed_environment(result);
    result["type"] = "done";
    channel.send(result);
  });
  job_ = std::move(job);
}

void Worker::take_messages() {
  while (true) {
    std::optional<Json> message;
    try {
      message = job_->child->receive(0);
    } catch (const run::ChannelError& error) {
      return finish(
          Outcome{result::Status::crashed, std::string("the child sent ") + error.what(), ""});
    }
    if (!message) break;
    const std::string type = message->value("type", "");
    if (type == "failed") return finish(outcome_from(*message));
    if (type == "done") return finish_done(*message);
    if (type == "progress") pass_on(*message);
  }
  if (job_->child->ended()) finish(job_->child->outcome());
}

/// Of progress, what is shown.
void Worker::pass_on(const Json& progress) {
  const auto number = [&](const char* key) {
    const double value = progress.value(key, 0.0);
    return std::isfinite(value) ? value : 0.0;
  };
  supervisor_.send({{"type", "progress"},
                    {"cell", cell_id(job_->request)},
                    {"done", number("done")},
                    {"total", number("total")},
                    {"what", progress.value("what", std::string()).substr(0, 200)}});
}

/// What the work said is held to its form here, where it costs its own cell only.
void Worker::finish_done(const Json& done) {
  const std::string type = job_->request.at("type");
  const std::string fault = result::answer_fault(type, done);
  if (fault.empty()) return finish(done);
  finish(Outcome{result::Status::error, "its record is not of the form of one: " + fault, ""});
}

void Worker::watch_child() {
  if (job_->child->over_limit()) return finish(over_limit(job_->request));
  const double elapsed = job_->child->elapsed_seconds();
  if (elapsed < job_->heartbeats + 1) return;
  job_->heartbeats = static_cast<int>(elapsed);
  supervisor_.send(
      {{"type", "heartbeat"}, {"cell", cell_id(job_->request)}, {"elapsed_seconds", elapsed}});
}

void Worker::finish(const Outcome& outcome) {
  if (job_->request.at("type") == "probe") {
    return finish(Json{{"type", "error"}, {"message", "probe: " + outcome.reason}});
  }
  Json result = to_json(outcome);
  if (outcome.status == result::Status::ok) result["status"] = "error";
  result["reason"] = outcome.reason.substr(0, longest_reason);
  result["detail"] = outcome.detail.substr(0, longest_detail);
  if (outcome.detail.empty()) result.erase("detail");
  if (job_->request.at("type") == "check") result["properties"] = Json::array();
  finish(std::move(result));
}

void Worker::finish(Json result) {
  const Json& request = job_->request;
  if (is_failure(result)) {
    const Json& asked = request.contains("cell") ? request.at("cell") : request;
    result["reason"] = result.value("reason", "") + blame(loaded_, asked);
  }
  const std::string type = request.at("type");
  const bool settled =
      result.value("type", "") == "error" || result.value("type", "") == "cancelled";
  if (!settled) result["type"] = type == "run" ? "record" : type;
  if (!settled && type == "run") {
    result["cell"] = cell_id(request);
    result["round"] = request.value("round", 0);
    result["started_at"] = job_->started_at;
    result["wall_seconds"] = job_->child->elapsed_seconds();
  } else if (!settled && type == "check") {
    for (const char* key : {"mechanism", "implementation", "pattern"}) {
      if (request.contains(key) && !result.contains(key)) result[key] = request.at(key);
    }
  }
  job_.reset();  // ends a child that is still there
  supervisor_.send(result);
}

}  // namespace attnbench::worker
