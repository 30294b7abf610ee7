#include "harness/worker/work.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/conformance/conformance.hpp"
#include "attention/torch/cuda.hpp"
#include "harness/worker/allocator.hpp"
#include "harness/worker/apply.hpp"
#include "harness/worker/context.hpp"
#include "harness/worker/plan.hpp"
#include "harness/worker/probe.hpp"

namespace attnbench::worker {
namespace {

RunSettings settings_of(const protocol::Run& request) {
  RunSettings settings;
  settings.round = request.round;
  settings.seed = request.seed;
  settings.rule = sampling_rule_from(request.measure);
  settings.checkpoint = request.checkpoint;
  settings.binary = request.binary;
  settings.process_rank = request.process_rank.value_or(run::ProcessRank{});
  settings.pinned = request.pinned;
  settings.device = request.cell.device;
  settings.device_bytes = request.limits.device_bytes;
  return settings;
}

ChildContext::Progress forward_to(run::Channel& channel, const std::string& cell) {
  return [&channel, cell](double done, double total, std::string_view what) {
    channel.send(protocol::Progress{cell, done, total, std::string(what)});
  };
}

Json wrong_record(Json check) {
  const std::string reason = check.value("reason", "the result is not the reference's");
  return {{"status", "wrong"}, {"reason", reason}, {"measured", {{"check", std::move(check)}}}};
}

/// Adds what was found of the timed calls to the check, which may become wrong by it.
void add_timed_check(Json& check, Json& sections) {
  if (!sections.is_object() || !sections.contains("timed_check")) return;
  Json timed = std::move(sections["timed_check"]);
  sections.erase("timed_check");
  if (!timed.is_object()) return;
  if (!check.is_object()) check = {{"verdict", "ok"}};
  if (timed.value("verdict", "") == "wrong") {
    check["verdict"] = "wrong";
    check["reason"] = timed.value("reason", "a timed call was wrong");
  }
  check["timed"] = std::move(timed);
}

Json finding_json(const conformance::Finding& finding, const std::string& dtype) {
  Json out = {{"name", finding.property},
              {"dtype", dtype},
              {"status", conformance::to_string(finding.status)}};
  if (!finding.reason.empty()) out["reason"] = finding.reason;
  if (finding.status == conformance::Status::not_applicable) return out;
  if (std::isfinite(finding.error)) out["error"] = finding.error;
  if (std::isfinite(finding.tolerance)) out["tolerance"] = finding.tolerance;
  return out;
}

bool has(const Json& properties, const char* status) {
  return std::any_of(properties.begin(), properties.end(),
                     [&](const Json& each) { return each.at("status") == status; });
}

/// Status and reason of the whole from its properties.
void conclude(Json& answer) {
  const Json& properties = answer.at("properties");
  const auto broken = std::find_if(properties.begin(), properties.end(),
                                   [](const Json& each) { return each.at("status") == "broken"; });
  if (broken != properties.end()) {
    answer["status"] = "wrong";
    answer["reason"] =
        broken->at("name").get<std::string>() + ": " + broken->value("reason", "broken");
  } else if (has(properties, "held") || properties.empty()) {
    answer["status"] = "ok";
  } else {
    answer["status"] = "unsupported";
    answer["reason"] = properties.front().value("reason", "not supported");
  }
}

}  // namespace

Json do_cell(const Loaded& loaded, const protocol::Run& request, run::Channel& channel) {
  install_counting_allocator();
  set_memory_limit(request.limits.memory_bytes);
  const tasks::Cell cell = task_cell(request.cell, loaded.tasks);
  const tasks::Task& task = loaded.tasks.find(request.cell.task);
  ChildContext context(settings_of(request), loaded.registry, forward_to(channel, cell.id));
  const std::unique_ptr<tasks::Work> work = task.make(loaded.registry, cell);
  work->prepare(context);
  Json check;
  if (context.round() == 0) {
    check = work->check(context);
    if (check.value("verdict", "") == "wrong") return wrong_record(std::move(check));
  }
  Json sections = work->run(context);
  add_timed_check(check, sections);
  if (check.is_object() && check.value("verdict", "") == "wrong") {
    return wrong_record(std::move(check));
  }
  Json measured = context.measured();
  if (!check.is_null()) measured["check"] = std::move(check);
  if (sections.is_object()) measured.update(sections);
  return {{"status", "ok"}, {"measured", std::move(measured)}};
}

Json check_conformance(const Registry& registry, const protocol::Check& request) {
  const Resolved resolved = registry.resolve(request.mechanism);
  const std::string asked =
      request.implementation.empty() ? resolved.implementation : request.implementation;
  const Implementation& implementation = resolved.entry->implementation(asked);
  conformance::CheckOptions options;
  options.options = resolved.options;
  options.device = torch_device(request.device);
  Json properties = Json::array();
  for (const std::string& dtype : request.dtypes) {
    for (const conformance::Finding& finding : conformance::check(
             *resolved.entry, registry.reference(resolved.entry->name), implementation,
             pattern_from(request.pattern), dtype_from(dtype), options)) {
      properties.push_back(finding_json(finding, dtype));
    }
  }
  Json answer = {{"mechanism", request.mechanism},
                 {"implementation", asked},
                 {"pattern", request.pattern},
                 {"properties", std::move(properties)}};
  conclude(answer);
  return answer;
}

Json write_data(const tasks::TaskTable& tasks, const protocol::Data& request) {
  const tasks::Task& task = tasks.find(request.task);
  const tasks::TaskData* const data = task.data();
  if (data == nullptr) {
    throw UsageError("the task " + task.name() + " learns from nothing: it has no data to write");
  }
  const Options settings = Options::resolve(data->settings(), request.settings);
  Json written = data->write(settings, request.seed, request.out);
  written["status"] = "ok";
  return written;
}

std::optional<ChildTask> child_task(const Json& message, const Loaded& loaded) {
  ChildTask task;
  task.type = message.value("type", "");
  if (task.type == "run") {
    const auto request = message.get<protocol::Run>();
    task.request = request;
    task.device = request.cell.device;
    task.cell = request.cell.id;
    task.round = request.round;
    task.task = request.cell.task;
    task.mechanism = request.cell.mechanism;
    task.implementation = request.cell.implementation;
    task.work = [&loaded, request](run::Channel& channel) {
      return do_cell(loaded, request, channel);
    };
  } else if (task.type == "check") {
    const auto request = message.get<protocol::Check>();
    task.request = request;
    task.device = request.device;
    task.mechanism = request.mechanism;
    task.implementation = request.implementation;
    task.pattern = request.pattern;
    task.work = [&loaded, request](run::Channel&) {
      return check_conformance(loaded.registry, request);
    };
  } else if (task.type == "probe") {
    const auto request = message.get<protocol::Probe>();
    task.request = request;
    task.device = request.device;
    task.work = [request](run::Channel&) { return probe(request); };
  } else if (task.type == "apply") {
    const auto request = message.get<protocol::Apply>();
    task.request = request;
    task.mechanism = request.mechanism;
    task.implementation = request.implementation;
    task.work = [&loaded, request](run::Channel&) {
      install_counting_allocator();
      set_memory_limit(request.limits.memory_bytes);
      return apply_arrays(loaded.registry, request);
    };
  } else if (task.type == "data") {
    const auto request = message.get<protocol::Data>();
    task.request = request;
    task.task = request.task;
    task.work = [&loaded, request](run::Channel&) { return write_data(loaded.tasks, request); };
  } else {
    return std::nullopt;
  }
  return task;
}

}  // namespace attnbench::worker
