#include "harness/run/check/scaling_cells.hpp"

#include "core/result/record.hpp"
#include "harness/run/check/scaling_check.hpp"

namespace attnbench::run {

Json GrowthCells::cell(const GrowthSize& size) const {
  Json options = held_;
  if (size.latents > 0) options["latents_per_head"] = size.latents;
  const std::string name = row_.entry + " " + row_.implementation;
  return {{"id", "growth-" + std::to_string(size.length) + "-" + std::to_string(size.latents) +
                     "-" + std::to_string(size.head_dim)},
          {"label", name},
          {"task", "kernel"},
          {"task_label", "kernel"},
          {"mechanism", row_.entry},
          {"implementation", row_.implementation},
          {"options", std::move(options)},
          {"settings",
           {{"batch", 1},
            {"heads", 2},
            {"head_dim", size.head_dim},
            {"length", size.length},
            {"pattern", row_.pattern},
            {"pass", "forward"},
            {"scope", "mix"},
            {"dtype", row_.dtype}}},
          {"device", row_.device}};
}

Json GrowthCells::forecast(const GrowthSize& size) const {
  const Json answer = ask_({{"type", "plan"}, {"cells", {cell(size)}}});
  const Json cells = answer.value("cells", Json::array());
  return cells.empty() ? Json() : cells.front();
}

bool GrowthCells::fits(const GrowthSize& size) const {
  const Json planned = forecast(size);
  if (!planned.is_object() || !planned.value("supported", false)) return false;
  return plan_.memory_limit_bytes <= 0 ||
         planned.value("peak_bytes", 0.0) <= plan_.memory_limit_bytes;
}

std::optional<Measured> GrowthCells::measure(const GrowthSize& size, int round,
                                             std::string& why) const {
  const Json record = ask_(request(size, round));
  if (record.value("status", "error") != "ok") {
    why = record.value("status", "error") + ": " + record.value("reason", "no reason given");
    return std::nullopt;
  }
  const Json& measured = record.at("measured");
  Measured out;
  const Json& timing = measured.at("timing").at("forward");
  out.seconds = timing.at("median_seconds");
  out.disturbed = result::is_disturbed_round(timing);
  const Json memory = measured.value("memory", Json::object());
  for (const char* what : {"workspace", "peak"}) {
    const std::string key = std::string(what) + "_bytes";
    if (memory.contains(key)) out.bytes[what] = memory.at(key);
  }
  if (!out.bytes.empty()) {
    const Json cost = forecast(size).value("cost", Json::object());
    if (cost.contains("state_bytes")) out.bytes["state"] = cost.at("state_bytes");
  }
  return out;
}

Json GrowthCells::request(const GrowthSize& size, int round) const {
  Json limits = {{"seconds", plan_.cell_timeout_seconds}};
  if (plan_.memory_limit_bytes > 0) {
    limits["memory_bytes"] = static_cast<std::int64_t>(plan_.memory_limit_bytes);
  }
  return {{"type", "run"},
          {"cell", cell(size)},
          {"round", round},
          {"seed", 0},
          {"limits", std::move(limits)},
          {"measure", {{"max_seconds", plan_.sampling_seconds}, {"min_samples", 10}}}};
}

}  // namespace attnbench::run
