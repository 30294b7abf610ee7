#include "harness/run/growing.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <optional>

namespace attnbench::run {
namespace {

using result::GrowthPoint;

/// What one child measured.
struct Measured {
  double seconds = 0;
  std::optional<double> workspace_bytes;
};

/// Cells of one implementation, and what the worker says of them.
class Cells {
 public:
  Cells(const Ask& ask, const CheckRow& row, const GrowthPlan& plan)
      : ask_(ask), row_(row), plan_(plan) {}

  /// `latents` 0 = the mechanism's default.
  Json cell(std::int64_t length, std::int64_t latents) const {
    Json options = Json::object();
    if (latents > 0) options["latents_per_head"] = latents;
    const std::string name = row_.entry + " " + row_.implementation;
    return {{"id", "growth-" + std::to_string(length) + "-" + std::to_string(latents)},
            {"label", name},
            {"task", "kernel"},
            {"task_label", "kernel"},
            {"mechanism", row_.entry},
            {"implementation", row_.implementation},
            {"options", std::move(options)},
            {"settings",
             {{"batch", 1},
              {"heads", 2},
              {"head_dim", 64},
              {"length", length},
              {"pattern", row_.pattern},
              {"pass", "forward"},
              {"scope", "mix"},
              {"dtype", row_.dtype}}},
            {"device", "cpu"}};
  }

  /// The worker's forecast, or null.
  Json forecast(std::int64_t length, std::int64_t latents) const {
    const Json answer = ask_({{"type", "plan"}, {"cells", {cell(length, latents)}}});
    const Json cells = answer.value("cells", Json::array());
    return cells.empty() ? Json() : cells.front();
  }

  bool fits(std::int64_t length, std::int64_t latents) const {
    const Json planned = forecast(length, latents);
    if (!planned.is_object() || !planned.value("supported", false)) return false;
    return plan_.memory_limit_bytes <= 0 ||
           planned.value("peak_bytes", 0.0) <= plan_.memory_limit_bytes;
  }

  /// Round 0 also meters memory. Nothing where the cell does not end well; `why` then says how.
  std::optional<Measured> measure(std::int64_t length, std::int64_t latents, int round,
                                  std::string& why) const {
    const Json record = ask_(request(length, latents, round));
    if (record.value("status", "error") != "ok") {
      why = record.value("status", "error") + ": " + record.value("reason", "no reason given");
      return std::nullopt;
    }
    const Json& measured = record.at("measured");
    Measured out;
    out.seconds = measured.at("timing").at("forward").at("median_seconds");
    const Json memory = measured.value("memory", Json::object());
    if (memory.contains("workspace_bytes")) out.workspace_bytes = memory.at("workspace_bytes");
    return out;
  }

 private:
  Json request(std::int64_t length, std::int64_t latents, int round) const {
    Json limits = {{"seconds", plan_.cell_timeout_seconds}};
    if (plan_.memory_limit_bytes > 0) {
      limits["memory_bytes"] = static_cast<std::int64_t>(plan_.memory_limit_bytes);
    }
    return {{"type", "run"},
            {"cell", cell(length, latents)},
            {"round", round},
            {"seed", 0},
            {"limits", std::move(limits)},
            {"measure", {{"max_seconds", plan_.sampling_seconds}, {"min_samples", 10}}}};
  }

  const Ask& ask_;
  const CheckRow& row_;
  const GrowthPlan& plan_;
};

/// A size axis: how a size becomes a cell.
struct Axis {
  std::string name;
  std::int64_t length(std::int64_t size) const { return fixed_length > 0 ? fixed_length : size; }
  std::int64_t latents(std::int64_t size) const { return fixed_length > 0 ? size : 0; }
  std::int64_t fixed_length = 0;
};

/// The least power-of-two length whose cell takes long enough, the latents fixed (0 = the
/// default); nothing, with the reason, where none does.
std::optional<std::int64_t> long_enough(const Cells& cells, const GrowthPlan& plan,
                                        std::int64_t latents, std::string& why) {
  std::int64_t length = plan.least_length;
  while (length <= plan.most_length) {
    if (!cells.fits(length, latents)) {
      why = "no cell that fits in memory takes 5 ms";
      return std::nullopt;
    }
    const auto measured = cells.measure(length, latents, 1, why);
    if (!measured) return std::nullopt;
    if (measured->seconds >= plan.least_seconds) return length;
    // Half the doublings that linear growth would need: quadratic growth cannot overshoot.
    const double missing = plan.least_seconds / std::max(measured->seconds, 1e-7);
    const double steps = std::max(1.0, std::floor(std::log2(missing) / 2));
    length <<= static_cast<int>(steps);
  }
  why = "no cell up to length " + std::to_string(plan.most_length) + " takes 5 ms";
  return std::nullopt;
}

struct Series {
  std::vector<GrowthPoint> seconds;
  std::vector<GrowthPoint> workspace;
  std::string why;
};

/// Interleaved over the sizes, so that a slow minute of the machine meets all of them.
void measure_series(const Cells& cells, const GrowthPlan& plan, const Axis& axis,
                    std::int64_t first, Series& series) {
  for (int round = 0; round < plan.children; ++round) {
    for (int i = 0; i < plan.sizes; ++i) {
      const std::int64_t size = first << i;
      if (!cells.fits(axis.length(size), axis.latents(size))) {
        series.why = "size " + std::to_string(size) + " does not fit in memory";
        continue;
      }
      const auto measured = cells.measure(axis.length(size), axis.latents(size), round, series.why);
      if (!measured) continue;
      const double x = static_cast<double>(size);
      series.seconds.push_back({x, measured->seconds});
      if (measured->workspace_bytes) series.workspace.push_back({x, *measured->workspace_bytes});
    }
  }
}

GrowthRow judged(const CheckRow& row, const std::string& quantity, const std::string& why,
                 std::vector<GrowthPoint> points, double claimed) {
  GrowthRow out{row.entry, row.implementation, row.pattern, quantity, std::move(points), {}};
  out.fit = result::fit_growth(out.points, claimed);
  if (out.fit.verdict == result::GrowthVerdict::undecided && !why.empty()) out.fit.reason = why;
  return out;
}

/// Time and workspace along one axis.
void measure_axis(const Cells& cells, const CheckRow& row, const GrowthPlan& plan, const Axis& axis,
                  std::int64_t first, const Json& claims, const Say& say,
                  std::vector<GrowthRow>& rows) {
  const double time = claims.value("time_in_" + axis.name, 0.0);
  const double workspace = claims.value("workspace_in_" + axis.name, 0.0);
  say("growth in " + axis.name + " of " + row.entry + " " + row.implementation + ", from " +
      std::to_string(first));
  Series series;
  measure_series(cells, plan, axis, first, series);
  const std::string in = " in " + axis.name;
  GrowthRow timed = judged(row, "time" + in, series.why, series.seconds, time);
  if (timed.fit.verdict == result::GrowthVerdict::differs) {
    // A neighbour on the machine may have come and gone: both series together decide.
    measure_series(cells, plan, axis, first, series);
    timed = judged(row, "time" + in, series.why, series.seconds, time);
  }
  rows.push_back(std::move(timed));
  rows.push_back(judged(row, "workspace" + in, series.why, series.workspace, workspace));
}

void undecided(const CheckRow& row, const std::string& quantity, double claimed,
               const std::string& why, std::vector<GrowthRow>& rows) {
  rows.push_back(judged(row, quantity, why, {}, claimed));
}

}  // namespace

std::vector<GrowthRow> measure_growth(const Ask& ask, const CheckRow& row, bool has_latents,
                                      const GrowthPlan& plan, const Say& say) {
  std::vector<GrowthRow> rows;
  const Cells cells(ask, row, plan);
  const Json planned = cells.forecast(plan.least_length, 0);
  if (!planned.is_object() || !planned.value("supported", false)) return rows;
  const Json claims = planned.value("growth", Json::object());
  std::string why;
  if (const auto first = long_enough(cells, plan, 0, why)) {
    measure_axis(cells, row, plan, {"length", 0}, *first, claims, say, rows);
  } else {
    undecided(row, "time in length", claims.value("time_in_length", 1.0), why, rows);
  }
  const bool claimed =
      claims.value("time_in_latents", 0.0) != 0 || claims.value("workspace_in_latents", 0.0) != 0;
  if (!has_latents || !claimed) return rows;
  // As many latents as head_dim or fewer cost less than what does not depend on them.
  constexpr std::int64_t fewest = 128;
  if (const auto length = long_enough(cells, plan, fewest, why)) {
    measure_axis(cells, row, plan, {"latents", *length}, fewest, claims, say, rows);
  } else {
    undecided(row, "time in latents", claims.value("time_in_latents", 1.0), why, rows);
  }
  return rows;
}

Json to_json(const GrowthRow& row) {
  Json out = {{"mechanism", row.mechanism},
              {"implementation", row.implementation},
              {"pattern", row.pattern},
              {"quantity", row.quantity},
              {"claimed", row.fit.claimed},
              {"tolerance", row.fit.tolerance},
              {"verdict", result::to_string(row.fit.verdict)},
              {"points", Json::array()},
              {"local", Json::array()}};
  if (row.fit.measured) out["measured"] = *row.fit.measured;
  if (!row.fit.reason.empty()) out["reason"] = row.fit.reason;
  for (const auto& point : row.points) {
    out["points"].push_back({{"size", point.size}, {"value", point.value}});
  }
  for (const auto& local : row.fit.local) {
    out["local"].push_back({{"from", local.from}, {"to", local.to}, {"slope", local.slope}});
  }
  return out;
}

}  // namespace attnbench::run
