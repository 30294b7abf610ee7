#include "harness/run/check/scaling_check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/text/format.hpp"
#include "harness/run/check/scaling_cells.hpp"

namespace attnbench::run {
namespace {

using result::GrowthPoint;

/// A size axis: what varies from `start` on, the rest held.
struct Axis {
  std::string name;  ///< length, latents or head_dim
  std::int64_t GrowthSize::*varies = &GrowthSize::length;
  GrowthSize start;
  result::GrowthClaim meant() const {
    return varies == &GrowthSize::length ? result::GrowthClaim::exponent
                                         : result::GrowthClaim::bound;
  }
  GrowthSize at(int doublings) const {
    GrowthSize size = start;
    size.*varies <<= doublings;
    return size;
  }
};

struct Series {
  std::vector<GrowthPoint> seconds;
  result::Touched bytes;
  std::string why;
};

constexpr const char* preempted = "other programs had the CPU while it was timed, in every process";

/// The first of a few children that was left alone; nothing, with the reason, where none was.
std::optional<Measured> measured_quietly(const GrowthCells& cells, const GrowthPlan& plan,
                                         const GrowthSize& size, std::string& why) {
  for (int round = 1; round <= std::max(1, plan.children); ++round) {
    const auto measured = cells.measure(size, round, why);
    if (!measured || !measured->disturbed) return measured;
  }
  why = "length " + std::to_string(size.length) + ": " + preempted;
  return std::nullopt;
}

/// `size` with the least power-of-two length whose cell takes long enough; nothing, with the
/// reason, where none does.
std::optional<GrowthSize> long_enough(const GrowthCells& cells, const GrowthPlan& plan,
                                      GrowthSize size, std::string& why) {
  size.length = plan.least_length;
  while (size.length <= plan.most_length) {
    if (!cells.fits(size)) {
      why = "no cell that fits in memory takes 5 ms";
      return std::nullopt;
    }
    const auto measured = measured_quietly(cells, plan, size, why);
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

/// Interleaved over the sizes, so that a slow minute of the machine meets all of them.
void measure_series(const GrowthCells& cells, const GrowthPlan& plan, const Axis& axis,
                    Series& series) {
  for (int round = 0; round < plan.children; ++round) {
    for (int i = 0; i < plan.sizes; ++i) {
      const GrowthSize size = axis.at(i);
      if (!cells.fits(size)) {
        series.why = "size " + std::to_string(size.*axis.varies) + " does not fit in memory";
        continue;
      }
      const auto measured = cells.measure(size, round, series.why);
      if (!measured) continue;
      const double x = static_cast<double>(size.*axis.varies);
      if (!measured->disturbed) series.seconds.push_back({x, measured->seconds});
      for (const auto& [what, bytes] : measured->bytes) series.bytes[what].push_back({x, bytes});
    }
  }
  for (int i = 0; i < plan.sizes; ++i) {
    const double x = static_cast<double>(axis.at(i).*axis.varies);
    const auto at = [x](const GrowthPoint& point) { return point.size == x; };
    if (!series.why.empty() || std::any_of(series.seconds.begin(), series.seconds.end(), at)) {
      continue;
    }
    series.why = axis.name + " " + std::to_string(axis.at(i).*axis.varies) + ": " + preempted;
  }
}

/// The least at each size: what disturbs a machine only adds, and to large sizes, which touch more
/// memory, more than to small ones.
std::vector<GrowthPoint> least_disturbed(const std::vector<GrowthPoint>& points) {
  std::map<double, double> least;
  for (const GrowthPoint& point : points) {
    const auto [found, is_new] = least.emplace(point.size, point.value);
    if (!is_new) found->second = std::min(found->second, point.value);
  }
  std::vector<GrowthPoint> out;
  for (const auto& [size, value] : least) out.push_back({size, value});
  return out;
}

GrowthRow judged(const CheckRow& row, const std::string& quantity, const std::string& why,
                 std::vector<GrowthPoint> points, double claimed, result::GrowthClaim meant) {
  GrowthRow out{row.entry, row.implementation, row.pattern, quantity, std::move(points), {}};
  out.fit = result::fit_growth(least_disturbed(out.points), claimed, meant);
  if (out.fit.verdict == result::GrowthVerdict::undecided && !why.empty()) out.fit.reason = why;
  return out;
}

/// What is claimed of time and workspace along one axis.
void measure_axis(const GrowthCells& cells, const CheckRow& row, const GrowthPlan& plan, Axis axis,
                  const Json& claims, const Say& say, std::vector<GrowthRow>& rows) {
  const std::string workspace = "workspace_in_" + axis.name;
  const double claimed = claims.value("time_in_" + axis.name, 0.0);
  const std::string in = " in " + axis.name;
  Series series;
  // Adds to the series what is measured along `at`; its verdict is on all that is there then.
  const auto measured = [&](const Axis& at) {
    say("growth" + in + " of " + row.entry + " " + row.implementation + ", from " +
        std::to_string(at.start.*at.varies));
    measure_series(cells, plan, at, series);
    return judged(row, "time" + in, series.why, series.seconds, claimed, axis.meant());
  };
  GrowthRow timed = measured(axis);
  const auto differs = [&timed] { return timed.fit.verdict == result::GrowthVerdict::differs; };
  // An exponent is of what remains at large sizes; where a smaller one is found, terms of lower
  // order may still weigh.
  for (int moves = 0; moves < plan.most_moves && differs() && *timed.fit.measured < claimed;
       ++moves) {
    Axis further = axis;
    further.start = axis.at(1);
    if (!cells.fits(further.at(plan.sizes - 1))) break;
    const Series before = std::exchange(series, {});
    GrowthRow beyond = measured(further);
    if (beyond.fit.verdict == result::GrowthVerdict::undecided) {
      series = before;
      break;
    }
    axis = further;
    timed = std::move(beyond);
  }
  if (differs()) {
    // A neighbour on the machine may have come and gone: both series together decide.
    timed = measured(axis);
    result::excuse_caches(timed.fit, plan.ladder, series.bytes);
    result::excuse_lower_orders(timed.fit, result::Reach::all);
  }
  rows.push_back(std::move(timed));
  if (!claims.contains(workspace)) return;
  rows.push_back(judged(row, "workspace" + in, series.why, series.bytes["workspace"],
                        claims.at(workspace), axis.meant()));
}

}  // namespace

std::vector<GrowthRow> measure_growth(const Ask& ask, const CheckRow& row, bool has_latents,
                                      const GrowthPlan& plan, const Say& say) {
  std::vector<GrowthRow> rows;
  GrowthCells cells(ask, row, plan);
  const Json planned = cells.forecast({plan.least_length});
  if (!planned.is_object() || !planned.value("supported", false)) return rows;
  const Json claims = planned.value("growth", Json::object());
  if (!claims.contains("time_in_length")) return rows;  // nothing is claimed
  GrowthPlan from_claim = plan;
  from_claim.least_length =
      std::max(plan.least_length, claims.value("from_length", plan.least_length));
  const auto along = [&](const std::string& name, std::int64_t GrowthSize::*varies,
                         const GrowthSize& from) {
    std::string why;
    const GrowthPlan& begun = varies == &GrowthSize::length ? from_claim : plan;
    if (const auto start = long_enough(cells, begun, from, why)) {
      measure_axis(cells, row, plan, {name, varies, *start}, claims, say, rows);
    } else {
      const std::string time = "time_in_" + name;
      rows.push_back(judged(row, "time in " + name, why, {}, claims.value(time, 1.0),
                            result::GrowthClaim::exponent));
    }
  };
  along("length", &GrowthSize::length, {});
  // As many latents as head_dim or fewer cost less than what does not depend on them.
  constexpr std::int64_t fewest = 128;
  const bool claimed =
      claims.value("time_in_latents", 0.0) != 0 || claims.value("workspace_in_latents", 0.0) != 0;
  if (has_latents && claimed) along("latents", &GrowthSize::latents, {0, fewest});
  if (!claims.contains("time_in_head_dim")) return rows;
  // Below this, what each pair of tokens costs whatever the width (exponentials) hides the growth.
  constexpr std::int64_t narrowest = 256;
  cells.hold(planned.value("options", Json::object()));
  along("head_dim", &GrowthSize::head_dim, {0, 0, narrowest});
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
