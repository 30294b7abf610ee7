#include "harness/program/run/check/scaling_check.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/protocol.hpp"
#include "core/result/record.hpp"
#include "core/text/format.hpp"

namespace attnbench::run {
namespace {

using reports::GrowthPoint;

/// What one child measured.
struct Measured {
  double seconds = 0;
  bool disturbed = false;  ///< other programs had the CPU: no time to judge by
  /// The bytes of round 0 by what they are ("workspace", "peak", "state"), where known.
  std::map<std::string, double> bytes;
};

/// The sizes of one cell; 0 latents = the mechanism's default.
struct Size {
  std::int64_t length = 0;
  std::int64_t latents = 0;
  std::int64_t head_dim = 64;
};

/// The cells of one implementation along its axes. Refers to what it is made of.
class ScalingCells {
 public:
  ScalingCells(const Ask& ask, const CheckRow& row, const ScalingPlan& plan)
      : ask_(ask), row_(row), plan_(plan), held_(row.options) {}

  /// Sets `options` in every cell from here on: defaults that follow a size stay as they are.
  void hold(OptionValues options) { held_ = std::move(options); }
  /// The worker's forecast; nothing where it has none.
  std::optional<Forecast> forecast(const Size& size) const;
  /// Whether the cell is supported and fits in memory.
  bool fits(const Size& size) const;
  /// Round 0 also meters memory. Nothing where the cell does not end well; `why` then says how.
  std::optional<Measured> measure(const Size& size, int round, std::string& why) const;

 private:
  Cell cell(const Size& size) const;
  protocol::Run request(const Size& size, int round) const;

  const Ask& ask_;
  const CheckRow& row_;
  const ScalingPlan& plan_;
  OptionValues held_;
};

Cell ScalingCells::cell(const Size& size) const {
  Cell cell;
  cell.id = "growth-" + std::to_string(size.length) + "-" + std::to_string(size.latents) + "-" +
            std::to_string(size.head_dim);
  cell.label = row_.entry + " " + row_.implementation;
  cell.task = cell.task_label = "kernel";
  cell.mechanism = row_.entry;
  cell.implementation = row_.implementation;
  cell.device = row_.device;
  cell.options = held_;
  if (size.latents > 0) cell.options["latents_per_head"] = size.latents;
  cell.settings = {{"batch", std::int64_t{1}},    {"heads", std::int64_t{2}},
                   {"head_dim", size.head_dim},   {"length", size.length},
                   {"pattern", row_.pattern},     {"pass", std::string("forward")},
                   {"scope", std::string("mix")}, {"dtype", row_.dtype}};
  return cell;
}

std::optional<Forecast> ScalingCells::forecast(const Size& size) const {
  const Json answer = ask_(protocol::Plan{{cell(size)}});
  if (!answer.contains("cells")) return std::nullopt;
  const auto forecasts = answer.get<protocol::PlanAnswer>().cells;
  return forecasts.empty() ? std::nullopt : std::optional(forecasts.front());
}

bool ScalingCells::fits(const Size& size) const {
  const auto planned = forecast(size);
  if (!planned || !planned->supported) return false;
  return plan_.memory_limit_bytes <= 0 ||
         planned->peak_bytes.value_or(0) <= plan_.memory_limit_bytes;
}

std::optional<Measured> ScalingCells::measure(const Size& size, int round, std::string& why) const {
  const auto record = ask_(request(size, round)).get<result::RoundRecord>();
  if (!record.ok()) {
    why = std::string(to_string(record.status)) + ": " +
          (record.reason.empty() ? "no reason given" : record.reason);
    return std::nullopt;
  }
  const result::TimingRound& timing = record.measured.timing.at("forward");
  Measured out{timing.median_seconds, timing.disturbed, {}};
  for (const std::string what : {"workspace", "peak"}) {
    const auto bytes = number_of(record.measured.memory, what + "_bytes");
    if (bytes) out.bytes[what] = *bytes;
  }
  if (out.bytes.empty()) return out;
  const auto planned = forecast(size);
  if (planned && planned->problem && std::isfinite(planned->cost.state_bytes)) {
    out.bytes["state"] = planned->cost.state_bytes;
  }
  return out;
}

protocol::Run ScalingCells::request(const Size& size, int round) const {
  protocol::Run request;
  request.cell = cell(size);
  request.round = round;
  request.limits.seconds = plan_.cell_timeout_seconds;
  request.limits.memory_bytes = static_cast<std::int64_t>(plan_.memory_limit_bytes);
  request.measure.max_seconds = plan_.sampling_seconds;
  request.measure.min_samples = 10;
  return request;
}

/// A size axis: one size varies from `start` on, the others are held.
struct Axis {
  std::string name;  ///< length, latents or head_dim
  std::int64_t Size::*varies = &Size::length;
  Size start;
  reports::GrowthClaim meaning() const {
    return varies == &Size::length ? reports::GrowthClaim::exponent : reports::GrowthClaim::bound;
  }
  Size at(int doublings) const {
    Size size = start;
    size.*varies <<= doublings;
    return size;
  }
};

struct Series {
  std::vector<GrowthPoint> seconds;
  reports::Touched bytes;
  std::string why;
};

constexpr const char* preempted = "other programs had the CPU while it was timed, in every process";

/// The first of a few children that was not disturbed; nothing, with the reason, where all were.
std::optional<Measured> measured_quietly(const ScalingCells& cells, const ScalingPlan& plan,
                                         const Size& size, std::string& why) {
  for (int round = 1; round <= std::max(1, plan.children); ++round) {
    const auto measured = cells.measure(size, round, why);
    if (!measured || !measured->disturbed) return measured;
  }
  why = "length " + std::to_string(size.length) + ": " + preempted;
  return std::nullopt;
}

/// `size` with the least power-of-two length whose cell takes long enough; nothing, with the
/// reason, where none does.
std::optional<Size> long_enough(const ScalingCells& cells, const ScalingPlan& plan, Size size,
                                std::string& why) {
  size.length = plan.least_length;
  while (size.length <= plan.max_length) {
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
  why = "no cell up to length " + std::to_string(plan.max_length) + " takes 5 ms";
  return std::nullopt;
}

/// Interleaved over the sizes, so that a slow minute of the machine affects all of them.
void measure_series(const ScalingCells& cells, const ScalingPlan& plan, const Axis& axis,
                    Series& series) {
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

/// The least value at each size: disturbances only add, and more to large sizes, which touch more
/// memory.
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

ScalingRow judged(const CheckRow& row, const std::string& quantity, const std::string& why,
                  std::vector<GrowthPoint> points, double claimed, reports::GrowthClaim meaning) {
  ScalingRow out{row.entry, row.implementation, row.pattern, quantity, std::move(points), {}};
  out.fit = reports::fit_growth(least_disturbed(out.points), claimed, meaning);
  if (out.fit.verdict == reports::GrowthVerdict::undecided && !why.empty()) out.fit.reason = why;
  return out;
}

/// Measures and judges the claims of time and workspace along one axis.
void measure_axis(const ScalingCells& cells, const CheckRow& row, const ScalingPlan& plan,
                  Axis axis, const Growth& claims, const Say& say, std::vector<ScalingRow>& rows) {
  const std::string workspace = "workspace_in_" + axis.name;
  const double claimed = claimed_exponent(claims, "time_in_" + axis.name).value_or(0);
  const std::string in = " in " + axis.name;
  Series series;
  // Adds what is measured along `at` to the series, and judges all of it.
  const auto measured = [&](const Axis& at) {
    say("growth" + in + " of " + row.entry + " " + row.implementation + ", from " +
        std::to_string(at.start.*at.varies));
    measure_series(cells, plan, at, series);
    return judged(row, "time" + in, series.why, series.seconds, claimed, axis.meaning());
  };
  ScalingRow timed = measured(axis);
  const auto differs = [&timed] { return timed.fit.verdict == reports::GrowthVerdict::differs; };
  // An exponent holds at large sizes; a smaller one found at small sizes may be due to terms of
  // lower order.
  for (int moves = 0; moves < plan.max_moves && differs() && *timed.fit.measured < claimed;
       ++moves) {
    Axis further = axis;
    further.start = axis.at(1);
    if (!cells.fits(further.at(plan.sizes - 1))) break;
    const Series before = std::exchange(series, {});
    ScalingRow beyond = measured(further);
    if (beyond.fit.verdict == reports::GrowthVerdict::undecided) {
      series = before;
      break;
    }
    axis = further;
    timed = std::move(beyond);
  }
  if (differs()) {
    // Another program may have run meanwhile: both series together decide.
    timed = measured(axis);
    reports::excuse_caches(timed.fit, plan.ladder, series.bytes);
    reports::excuse_lower_orders(timed.fit, reports::Reach::all);
  }
  rows.push_back(std::move(timed));
  const std::optional<double> claimed_workspace = claimed_exponent(claims, workspace);
  if (!claimed_workspace) return;
  rows.push_back(judged(row, "workspace" + in, series.why, series.bytes["workspace"],
                        *claimed_workspace, axis.meaning()));
}

}  // namespace

std::vector<ScalingRow> measure_scaling(const Ask& ask, const CheckRow& row, bool has_latents,
                                        const ScalingPlan& plan, const Say& say) {
  std::vector<ScalingRow> rows;
  ScalingCells cells(ask, row, plan);
  const auto planned = cells.forecast({plan.least_length});
  if (!planned || !planned->supported) return rows;
  const Growth& claims = planned->growth;
  if (!planned->problem || !std::isfinite(claims.time_in_length))
    return rows;  // nothing is claimed
  ScalingPlan from_claim = plan;
  from_claim.least_length = std::max(plan.least_length, claims.from_length);
  const auto along = [&](const std::string& name, std::int64_t Size::*varies, const Size& from) {
    std::string why;
    const ScalingPlan& begun = varies == &Size::length ? from_claim : plan;
    if (const auto start = long_enough(cells, begun, from, why)) {
      measure_axis(cells, row, plan, {name, varies, *start}, claims, say, rows);
    } else {
      const std::string time = "time_in_" + name;
      rows.push_back(judged(row, "time in " + name, why, {},
                            claimed_exponent(claims, time).value_or(1),
                            reports::GrowthClaim::exponent));
    }
  };
  along("length", &Size::length, {});
  // Up to head_dim latents cost less than the work that does not depend on them.
  constexpr std::int64_t fewest = 128;
  const bool claimed = claimed_exponent(claims, "time_in_latents").value_or(0) != 0 ||
                       claimed_exponent(claims, "workspace_in_latents").value_or(0) != 0;
  const bool varies = has_latents && row.options.count("latents_per_head") == 0;
  if (varies && claimed) along("latents", &Size::latents, {0, fewest});
  if (!std::isfinite(claims.time_in_head_dim)) return rows;
  // Below this width, the cost per pair of tokens that does not depend on it (exponentials) hides
  // the growth.
  constexpr std::int64_t narrowest = 256;
  cells.hold(planned->options.value_or(OptionValues{}));
  along("head_dim", &Size::head_dim, {0, 0, narrowest});
  return rows;
}

void to_json(Json& json, const ScalingRow& row) {
  Json points = Json::array(), local = Json::array();
  for (const auto& point : row.points) {
    points.push_back({{"size", point.size}, {"value", point.value}});
  }
  for (const auto& slope : row.fit.local) {
    local.push_back({{"from", slope.from}, {"to", slope.to}, {"slope", slope.slope}});
  }
  json = {{"mechanism", row.mechanism},
          {"implementation", row.implementation},
          {"pattern", row.pattern},
          {"quantity", row.quantity},
          {"claimed", row.fit.claimed},
          {"tolerance", row.fit.tolerance},
          {"verdict", to_string(row.fit.verdict)},
          {"points", std::move(points)},
          {"local", std::move(local)}};
  if (row.fit.measured) json["measured"] = *row.fit.measured;
  if (!row.fit.reason.empty()) json["reason"] = row.fit.reason;
}

}  // namespace attnbench::run
