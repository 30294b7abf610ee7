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

/// What a cell of a growth axis is; 0 latents = the mechanism's default.
struct Size {
  std::int64_t length = 0;
  std::int64_t latents = 0;
  std::int64_t head_dim = 64;
};

/// Cells of one implementation, and what the worker says of them.
class Cells {
 public:
  Cells(const Ask& ask, const CheckRow& row, const GrowthPlan& plan)
      : ask_(ask), row_(row), plan_(plan) {}

  /// `options` are said in every cell from here on: defaults that follow a size stay as they are.
  void hold(Json options) { held_ = std::move(options); }

  Json cell(const Size& size) const {
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

  /// The worker's forecast, or null.
  Json forecast(const Size& size) const {
    const Json answer = ask_({{"type", "plan"}, {"cells", {cell(size)}}});
    const Json cells = answer.value("cells", Json::array());
    return cells.empty() ? Json() : cells.front();
  }

  bool fits(const Size& size) const {
    const Json planned = forecast(size);
    if (!planned.is_object() || !planned.value("supported", false)) return false;
    return plan_.memory_limit_bytes <= 0 ||
           planned.value("peak_bytes", 0.0) <= plan_.memory_limit_bytes;
  }

  /// Round 0 also meters memory. Nothing where the cell does not end well; `why` then says how.
  std::optional<Measured> measure(const Size& size, int round, std::string& why) const {
    const Json record = ask_(request(size, round));
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
  Json request(const Size& size, int round) const {
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

  const Ask& ask_;
  const CheckRow& row_;
  const GrowthPlan& plan_;
  Json held_ = Json::object();
};

/// A size axis: what varies from `start` on, the rest held.
struct Axis {
  std::string name;  ///< length, latents or head_dim
  std::int64_t Size::*varies = &Size::length;
  Size start;
  result::GrowthClaim meant() const {
    return varies == &Size::length ? result::GrowthClaim::exponent : result::GrowthClaim::bound;
  }
  Size at(int doublings) const {
    Size size = start;
    size.*varies <<= doublings;
    return size;
  }
};

/// `size` with the least power-of-two length whose cell takes long enough; nothing, with the
/// reason, where none does.
std::optional<Size> long_enough(const Cells& cells, const GrowthPlan& plan, Size size,
                                std::string& why) {
  size.length = plan.least_length;
  while (size.length <= plan.most_length) {
    if (!cells.fits(size)) {
      why = "no cell that fits in memory takes 5 ms";
      return std::nullopt;
    }
    const auto measured = cells.measure(size, 1, why);
    if (!measured) return std::nullopt;
    if (measured->seconds >= plan.least_seconds) return size;
    // Half the doublings that linear growth would need: quadratic growth cannot overshoot.
    const double missing = plan.least_seconds / std::max(measured->seconds, 1e-7);
    const double steps = std::max(1.0, std::floor(std::log2(missing) / 2));
    size.length <<= static_cast<int>(steps);
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
void measure_series(const Cells& cells, const GrowthPlan& plan, const Axis& axis, Series& series) {
  for (int round = 0; round < plan.children; ++round) {
    for (int i = 0; i < plan.sizes; ++i) {
      const Size size = axis.at(i);
      if (!cells.fits(size)) {
        series.why = "size " + std::to_string(size.*axis.varies) + " does not fit in memory";
        continue;
      }
      const auto measured = cells.measure(size, round, series.why);
      if (!measured) continue;
      const double x = static_cast<double>(size.*axis.varies);
      series.seconds.push_back({x, measured->seconds});
      if (measured->workspace_bytes) series.workspace.push_back({x, *measured->workspace_bytes});
    }
  }
}

GrowthRow judged(const CheckRow& row, const std::string& quantity, const std::string& why,
                 std::vector<GrowthPoint> points, double claimed, result::GrowthClaim meant) {
  GrowthRow out{row.entry, row.implementation, row.pattern, quantity, std::move(points), {}};
  out.fit = result::fit_growth(out.points, claimed, meant);
  if (out.fit.verdict == result::GrowthVerdict::undecided && !why.empty()) out.fit.reason = why;
  return out;
}

/// A workspace that leaves the last cache between the sizes makes time grow faster than work does, by
/// up to what memory is slower: such a slope refutes nothing.
void excuse_caches(const GrowthPlan& plan, const Series& series, result::GrowthFit& fit) {
  constexpr double at_most = 0.5;  // memory at half the cache's bandwidth, over a factor of 4 in size
  if (fit.verdict != result::GrowthVerdict::differs || series.workspace.empty()) return;
  const double over = *fit.measured - fit.claimed;
  if (over < 0 || over > at_most + fit.tolerance) return;
  const auto [least, most] = std::minmax_element(
      series.workspace.begin(), series.workspace.end(),
      [](const GrowthPoint& a, const GrowthPoint& b) { return a.value < b.value; });
  // The cache is shared and not perfectly used: its effect is seen around its size.
  if (least->value > 2 * plan.cache_bytes || most->value < plan.cache_bytes / 4) return;
  fit.verdict = result::GrowthVerdict::undecided;
  fit.reason = "the exponent is " + result::exponent_text(*fit.measured) +
               ", but between these sizes the workspace outgrows the last-level cache";
}

/// What is claimed of time and workspace along one axis.
void measure_axis(const Cells& cells, const CheckRow& row, const GrowthPlan& plan, const Axis& axis,
                  const Json& claims, const Say& say, std::vector<GrowthRow>& rows) {
  const std::string workspace = "workspace_in_" + axis.name;
  const double time = claims.value("time_in_" + axis.name, 0.0);
  say("growth in " + axis.name + " of " + row.entry + " " + row.implementation + ", from " +
      std::to_string(axis.start.*axis.varies));
  Series series;
  measure_series(cells, plan, axis, series);
  const std::string in = " in " + axis.name;
  GrowthRow timed = judged(row, "time" + in, series.why, series.seconds, time, axis.meant());
  if (timed.fit.verdict == result::GrowthVerdict::differs) {
    // A neighbour on the machine may have come and gone: both series together decide.
    measure_series(cells, plan, axis, series);
    timed = judged(row, "time" + in, series.why, series.seconds, time, axis.meant());
    excuse_caches(plan, series, timed.fit);
  }
  rows.push_back(std::move(timed));
  if (!claims.contains(workspace)) return;
  rows.push_back(judged(row, "workspace" + in, series.why, series.workspace, claims.at(workspace),
                        axis.meant()));
}

}  // namespace

std::vector<GrowthRow> measure_growth(const Ask& ask, const CheckRow& row, bool has_latents,
                                      const GrowthPlan& plan, const Say& say) {
  std::vector<GrowthRow> rows;
  Cells cells(ask, row, plan);
  const Json planned = cells.forecast({plan.least_length});
  if (!planned.is_object() || !planned.value("supported", false)) return rows;
  const Json claims = planned.value("growth", Json::object());
  GrowthPlan from_claim = plan;
  from_claim.least_length =
      std::max(plan.least_length, claims.value("from_length", plan.least_length));
  const auto along = [&](const std::string& name, std::int64_t Size::*varies, const Size& from) {
    std::string why;
    const GrowthPlan& begun = varies == &Size::length ? from_claim : plan;
    if (const auto start = long_enough(cells, begun, from, why)) {
      measure_axis(cells, row, plan, {name, varies, *start}, claims, say, rows);
    } else {
      const std::string time = "time_in_" + name;
      rows.push_back(judged(row, "time in " + name, why, {}, claims.value(time, 1.0),
                            result::GrowthClaim::exponent));
    }
  };
  along("length", &Size::length, {});
  // As many latents as head_dim or fewer cost less than what does not depend on them.
  constexpr std::int64_t fewest = 128;
  const bool claimed =
      claims.value("time_in_latents", 0.0) != 0 || claims.value("workspace_in_latents", 0.0) != 0;
  if (has_latents && claimed) along("latents", &Size::latents, {0, fewest});
  if (!claims.contains("time_in_head_dim")) return rows;
  // Below this, what each pair of tokens costs whatever the width (exponentials) hides the growth.
  constexpr std::int64_t narrowest = 256;
  cells.hold(planned.value("options", Json::object()));
  along("head_dim", &Size::head_dim, {0, 0, narrowest});
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
