#include "harness/worker/work.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <nlohmann/json.hpp>

#include "attention/conformance/conformance.hpp"
#include "attention/torch/cuda.hpp"
#include "harness/worker/allocator.hpp"
#include "harness/worker/apply.hpp"
#include "harness/worker/context.hpp"
#include "harness/worker/generate.hpp"
#include "harness/worker/plan.hpp"
#include "harness/worker/probe.hpp"

namespace attnbench::worker {
namespace {

using Clock = std::chrono::steady_clock;

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

WorkSettings settings_of(const protocol::Run& request) {
  WorkSettings settings;
  settings.round = request.round;
  settings.seed = request.seed;
  settings.rule = request.measure;
  settings.checkpoint = request.checkpoint;
  settings.binary = request.binary;
  settings.process_rank = request.process_rank.value_or(ProcessRank{});
  settings.pinned = request.pinned;
  settings.device = request.cell.device;
  settings.device_bytes = request.limits.device_bytes;
  return settings;
}

ChildContext::Progress forward_to(process::Channel& channel, const std::string& cell) {
  return [&channel, cell](double done, double total, std::string_view what) {
    channel.send(protocol::Progress{cell, done, total, std::string(what)});
  };
}

/// What a task, which may be a plugin's, says of a check. Throws Error: the request made sense.
result::Check check_from(const Json& json) {
  try {
    return json.get<result::Check>();
  } catch (const SchemaError& error) {
    throw Error(std::string("the task's check has another form: ") + error.what());
  }
}

/// What cannot be checked has failed, too: nothing says that it is the mechanism that was timed.
bool passed(const result::Check& check) {
  return check.verdict != "wrong" && check.verdict != "unchecked";
}

Json failed_record(const result::Check& check) {
  const std::string reason =
      check.reason.empty() ? "the result is not the reference's" : check.reason;
  const char* const status = check.verdict == "wrong" ? "wrong" : "error";
  return {{"status", status}, {"reason", reason}, {"measured", {{"check", check}}}};
}

/// Adds what was found of the timed calls to the check, which may become wrong by it.
void add_timed_check(std::optional<result::Check>& check, Json& sections) {
  if (!sections.is_object()) return;
  const auto found = sections.find("timed_check");
  if (found == sections.end()) return;
  const Json json = std::move(*found);
  sections.erase(found);
  if (!json.is_object()) return;
  const result::Check timed = check_from(json);
  if (!check) check = result::Check{"ok", "", {}};
  if (!passed(timed)) {
    check->verdict = timed.verdict;
    check->reason = timed.reason.empty() ? "a timed call was wrong" : timed.reason;
  }
  check->further["timed"] = json;
}

std::optional<double> finite(double number) {
  return std::isfinite(number) ? std::optional(number) : std::nullopt;
}

protocol::Property property_of(const conformance::Finding& finding, const std::string& dtype) {
  protocol::Property out;
  out.name = finding.property;
  out.dtype = dtype;
  out.status = protocol::property_status_from(conformance::to_string(finding.status));
  out.reason = finding.reason;
  if (out.status == protocol::PropertyStatus::not_applicable) return out;
  out.error = finite(finding.error);
  out.tolerance = finite(finding.tolerance);
  return out;
}

/// Status and reason of the whole from its properties.
void conclude(protocol::CheckAnswer& answer) {
  using protocol::PropertyStatus;
  const auto& properties = answer.properties;
  const auto broken = std::find_if(
      properties.begin(), properties.end(),
      [](const protocol::Property& each) { return each.status == PropertyStatus::broken; });
  if (broken != properties.end()) {
    answer.status = Status::wrong;
    answer.reason = broken->name + ": " + (broken->reason.empty() ? "broken" : broken->reason);
  } else if (!properties.empty() && answer.count(PropertyStatus::held) == 0) {
    answer.status = Status::unsupported;
    const std::string& reason = properties.front().reason;
    answer.reason = reason.empty() ? "not supported" : reason;
  }
}

}  // namespace

Json do_cell(const Loaded& loaded, const protocol::Run& request, process::Channel& channel) {
  install_counting_allocator();
  set_memory_limit(request.limits.memory_bytes);
  const tasks::ResolvedCell cell = task_cell(request.cell, loaded.tasks);
  const tasks::Task& task = loaded.tasks.find(request.cell.task);
  ChildContext context(settings_of(request), loaded.registry, forward_to(channel, cell.id));
  std::unique_ptr<tasks::Work> work;
  context.part("prepare", [&] {
    work = task.make(loaded.registry, cell);
    work->prepare(context);
  });
  std::optional<result::Check> check;
  double check_seconds = 0;
  if (context.round() == 0) {
    const auto begin = Clock::now();
    check = context.part("check", [&] { return check_from(work->check(context)); });
    check_seconds = since(begin);
    if (!passed(*check)) return failed_record(*check);
  }
  Json sections = context.part("work", [&] { return work->run(context); });
  add_timed_check(check, sections);
  if (check && !passed(*check)) return failed_record(*check);
  result::Measured seen = context.measured();
  seen.check = std::move(check);
  if (const auto python = loaded.python.find(request.cell.mechanism);
      python != loaded.python.end()) {
    seen.further["python"] = python_section(python->second, seen.timing, check_seconds);
  }
  Json measured = seen;
  if (sections.is_object()) measured.update(sections);
  return {{"status", "ok"}, {"measured", std::move(measured)}};
}

protocol::CheckAnswer check_conformance(const Registry& registry, const protocol::Check& request) {
  const Resolved resolved = registry.resolve(request.mechanism);
  const std::string asked =
      request.implementation.empty() ? resolved.implementation : request.implementation;
  const Implementation& implementation = resolved.entry->implementation(asked);
  conformance::CheckOptions options;
  options.options = resolved.options;
  for (const auto& [name, value] : request.options) options.options[name] = value;
  options.device = torch_device(request.device);
  protocol::CheckAnswer answer;
  answer.mechanism = request.mechanism;
  answer.implementation = asked;
  answer.pattern = request.pattern;
  for (const std::string& dtype : request.dtypes) {
    for (const conformance::Finding& finding : conformance::check(
             *resolved.entry, registry.reference(resolved.entry->name), implementation,
             pattern_from(request.pattern), dtype_from(dtype), options)) {
      answer.properties.push_back(property_of(finding, dtype));
    }
  }
  conclude(answer);
  return answer;
}

protocol::DataAnswer write_data(const tasks::TaskTable& tasks, const protocol::Data& request) {
  const tasks::Task& task = tasks.find(request.task);
  const tasks::TaskData* const data = task.data();
  if (data == nullptr) {
    throw UsageError("the task " + task.name() + " learns from nothing: it has no data to write");
  }
  const Options settings = Options::resolve(data->settings(), request.settings);
  const Json written = data->write(settings, request.seed, request.out);
  protocol::DataAnswer answer;
  JsonReader(written).at("files", answer.files);
  return answer;
}

std::optional<ChildTask> child_task(const Json& message, const Loaded& loaded) {
  ChildTask task;
  task.type = protocol::type_of(message);
  if (task.type == "run") {
    const auto request = message.get<protocol::Run>();
    task.request = request;
    task.device = request.cell.device;
    task.cell = request.cell.id;
    task.round = request.round;
    task.task = request.cell.task;
    task.mechanism = request.cell.mechanism;
    task.implementation = request.cell.implementation;
    task.work = [&loaded, request](process::Channel& channel) {
      return do_cell(loaded, request, channel);
    };
  } else if (task.type == "check") {
    const auto request = message.get<protocol::Check>();
    task.request = request;
    task.device = request.device;
    task.mechanism = request.mechanism;
    task.implementation = request.implementation;
    task.pattern = request.pattern;
    task.work = [&loaded, request](process::Channel&) {
      return check_conformance(loaded.registry, request);
    };
  } else if (task.type == "probe") {
    const auto request = message.get<protocol::Probe>();
    task.request = request;
    task.device = request.device;
    task.work = [request](process::Channel&) { return probe(request); };
  } else if (task.type == "apply") {
    const auto request = message.get<protocol::Apply>();
    task.request = request;
    task.mechanism = request.mechanism;
    task.implementation = request.implementation;
    task.work = [&loaded, request](process::Channel&) {
      install_counting_allocator();
      set_memory_limit(request.limits.memory_bytes);
      return apply_arrays(loaded.registry, request);
    };
  } else if (task.type == "data") {
    const auto request = message.get<protocol::Data>();
    task.request = request;
    task.task = request.task;
    task.work = [&loaded, request](process::Channel&) { return write_data(loaded.tasks, request); };
  } else if (task.type == "generate") {
    const auto request = message.get<protocol::Generate>();
    task.request = request;
    task.device = request.cell.device;
    task.cell = request.cell.id;
    task.task = request.cell.task;
    task.mechanism = request.cell.mechanism;
    task.implementation = request.cell.implementation;
    task.work = [&loaded, request](process::Channel& channel) {
      install_counting_allocator();
      set_memory_limit(request.limits.memory_bytes);
      return generate_bytes(loaded, request, forward_to(channel, request.cell.id));
    };
  } else {
    return std::nullopt;
  }
  return task;
}

}  // namespace attnbench::worker
