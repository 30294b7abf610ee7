#include "harness/worker/work.hpp"

#include <nlohmann/json.hpp>

#include "harness/worker/allocator.hpp"
#include "harness/worker/cell.hpp"
#include "harness/worker/context.hpp"

namespace attnbench::worker {
namespace {

RunSettings settings_of(const Json& request) {
  RunSettings settings;
  settings.round = request.value("round", 0);
  settings.seed = request.value("seed", std::uint64_t{0});
  settings.rule = sampling_rule_from(request.value("measure", Json::object()));
  settings.checkpoint = request.value("checkpoint", "");
  settings.binary = request.value("binary", "");
  if (request.contains("process_rank")) {
    const Json& process_rank = request.at("process_rank");
    settings.process_rank = {process_rank.at("rank"), process_rank.at("size"), process_rank.at("address"), process_rank.at("port")};
  }
  settings.pinned = request.value("pinned", true);
  settings.device = request.at("cell").value("device", "cpu");
  settings.device_bytes =
      request.value("limits", Json::object()).value("device_bytes", std::int64_t{0});
  return settings;
}

ChildContext::Progress forward_to(run::Channel& channel, const std::string& cell) {
  return [&channel, cell](double done, double total, std::string_view what) {
    channel.send({{"type", "progress"},
                  {"cell", cell},
                  {"done", done},
                  {"total", total},
                  {"what", std::string(what)}});
  };
}

Json wrong_record(Json check) {
  const std::string reason = check.value("reason", "the result is not the reference's");
  return {{"status", "wrong"}, {"reason", reason}, {"measured", {{"check", std::move(check)}}}};
}

/// What was found of the timed calls is a part of the check, and may turn it.
void take_timed_check(Json& check, Json& sections) {
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

}  // namespace

Json do_cell(const Loaded& loaded, const Json& request, run::Channel& channel) {
  install_counting_allocator();
  const Json limits = request.value("limits", Json::object());
  set_memory_limit(limits.value("memory_bytes", std::int64_t{0}));
  const tasks::Cell cell = cell_from(request.at("cell"), loaded.tasks);
  const tasks::Task& task = loaded.tasks.find(request.at("cell").at("task"));
  ChildContext context(settings_of(request), loaded.registry, forward_to(channel, cell.id));
  const std::unique_ptr<tasks::Work> work = task.make(loaded.registry, cell);
  work->prepare(context);
  Json check;
  if (context.round() == 0) {
    check = work->check(context);
    if (check.value("verdict", "") == "wrong") return wrong_record(std::move(check));
  }
  Json sections = work->run(context);
  take_timed_check(check, sections);
  if (check.is_object() && check.value("verdict", "") == "wrong") {
    return wrong_record(std::move(check));
  }
  Json measured = context.measured();
  if (!check.is_null()) measured["check"] = std::move(check);
  if (sections.is_object()) measured.update(sections);
  return {{"status", "ok"}, {"measured", std::move(measured)}};
}

}  // namespace attnbench::worker
