#include "reports/tables/panel_growth.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/text/printable.hpp"
#include "reports/tables/missing.hpp"

namespace attnbench::reports {
namespace {

/// The claim's name for an axis; empty for one that nothing is claimed of.
std::string claim_axis(const std::string& axis) {
  if (axis == "length" || axis == "head_dim") return axis;
  if (axis == "width") return "head_dim";
  return axis == "latents_total" || axis == "latents_per_head" ? "latents" : "";
}

bool is_claimed_of(const result::CellRecord& cell, GrownQuantity what) {
  const auto says = [&cell](const char* key, const char* word) {
    const auto value = value_of(cell, key);
    return !value || *value == word;
  };
  if (cell.task != "kernel" || !says("scope", "mix")) return false;
  // Tokens after a past grow with it, too; a ragged batch's longest length says nothing of its
  // work.
  const auto past = value_of(cell, "past");
  if ((past && *past != 0) || !says("lengths", "")) return false;
  return says("pass", "forward") ||
         (what == GrownQuantity::time && says("pass", "forward+backward"));
}

/// The levels of memory that the run measured, as a ladder; empty where it did not.
std::vector<Rung> ladder_of(const Panel& panel) {
  std::vector<Rung> ladder;
  if (panel.ceilings == nullptr) return ladder;
  const auto ceiling = [&](const std::string& name) {
    return number_of(*panel.ceilings, name).value_or(0);
  };
  double touched = 0;
  for (const char* level : {"l1", "l2", "l3", "dram"}) {
    const std::string name = level;
    const double rate = ceiling("bandwidth_" + name + "_bytes_per_second");
    // Beyond the last cache nothing is smaller than what is touched.
    touched = name == "dram" ? 4 * touched : ceiling("capacity_" + name + "_bytes");
    if (rate <= 0 || touched <= 0) return {};
    ladder.push_back({touched, rate});
  }
  return ladder;
}

void add_touched(Touched& touched, const result::CellRecord& cell, double size) {
  const auto add = [&](const char* what, const std::optional<double>& bytes) {
    if (bytes && std::isfinite(*bytes)) touched[what].push_back({size, *bytes});
  };
  add("workspace", number_of(cell.memory, "workspace_bytes"));
  add("peak", number_of(cell.memory, "peak_bytes"));
  if (cell.cost) add("state", cell.cost->state_bytes);
}

bool grows(const Touched& touched) {
  return std::any_of(touched.begin(), touched.end(), [](const auto& part) {
    const auto& points = part.second;
    return std::any_of(points.begin(), points.end(), [&](const GrowthPoint& point) {
      return point.value > points.front().value || point.value < points.front().value;
    });
  });
}

void excuse(GrowthFit& fit, GrownQuantity what, const std::vector<Rung>& ladder,
            const Touched& touched) {
  excuse_lower_orders(fit, Reach::chosen);
  if (what != GrownQuantity::time) return;
  excuse_caches(fit, ladder, touched);
  const bool faster = fit.verdict == GrowthVerdict::differs && *fit.measured > fit.claimed;
  if (!faster || !ladder.empty() || !grows(touched)) return;
  fit.verdict = GrowthVerdict::undecided;
  fit.reason += "; whether caches explain it cannot be said without the machine's ceilings";
}

/// No claim is held or missed where its largest sizes are missing, which could tell otherwise. What
/// ran out of memory there says nothing against it.
void withhold(GrowthFit& fit, const std::vector<Entrant>& missing,
              const std::vector<GrowthPoint>& points) {
  if (fit.verdict == GrowthVerdict::undecided) return;
  double largest = 0;
  for (const GrowthPoint& point : points) largest = std::max(largest, point.size);
  for (const Entrant& one : missing) {
    const MissingAt beyond = missing_at(missing, one.x, 0, false);
    if (*one.x < largest || beyond.below.empty()) continue;
    fit.verdict = GrowthVerdict::undecided;
    fit.reason = found_words(fit) + ", but " + missing_words(beyond.below) + " at " +
                 text::human_value(Json(*one.x));
    return;
  }
}

/// Reasons why claims are not held, each once with the series that it is of.
using Reasons = std::map<std::string, std::string>;

void add_reason(Reasons& reasons, const char* what, const PanelGrowth& grown) {
  if (!grown.claimed || grown.word == "held") return;
  std::string& names = reasons[grown.fit.reason];
  names += (names.empty() ? "" : ", ") + text::name_in_sentence(grown.series) + " (" + what + ")";
}

std::string words_of(const Reasons& reasons) {
  if (reasons.empty()) return "";
  std::string text = "claims are held as `attnbench check` holds them";
  for (const auto& [reason, names] : reasons) text += "; " + names + ": " + reason;
  return text;
}

}  // namespace

std::optional<double> claimed_exponent(const result::CellRecord& cell, GrownQuantity what,
                                       const std::string& axis) {
  const std::string named = claim_axis(axis);
  const std::string key =
      std::string(what == GrownQuantity::time ? "time" : "workspace") + "_in_" + named;
  if (named.empty() || !is_claimed_of(cell, what)) return std::nullopt;
  return number_of(cell.growth, key);
}

std::optional<GrowthPoint> grown_value(const result::CellRecord& cell, GrownQuantity what,
                                       double size) {
  if (what == GrownQuantity::workspace) {
    const auto bytes = number_of(cell.memory, "workspace_bytes");
    if (!bytes || (!result::is_ok(cell) && !result::is_disturbed(cell))) return std::nullopt;
    return GrowthPoint{size, *bytes};
  }
  const result::Timing* const timing = result::is_ok(cell) ? result::timing_of(cell) : nullptr;
  if (timing == nullptr) return std::nullopt;
  return GrowthPoint{size, timing->median_seconds, timing->low_seconds, timing->high_seconds};
}

std::vector<PanelGrowth> panel_growth(const Panel& panel, GrownQuantity what) {
  std::vector<PanelGrowth> all;
  if (claim_axis(panel.axis).empty()) return all;
  const std::vector<Rung> ladder = ladder_of(panel);
  for (const std::string& series : panel.series) {
    std::vector<GrowthPoint> points;
    std::vector<Entrant> missing;
    Touched touched;
    int small = 0;
    std::optional<double> claimed;
    for (const Placed& placed : panel.cells) {
      if (placed.series != series || !placed.x || !placed.x->is_number()) continue;
      if (!claimed) claimed = claimed_exponent(*placed.cell, what, panel.axis);
      const double x = placed.x->get<double>();
      const double from =
          panel.axis == "length" ? number_of(placed.cell->growth, "from_length").value_or(0) : 0;
      const auto point = x > 0 ? grown_value(*placed.cell, what, x) : std::nullopt;
      if (!point && !result::is_ok(*placed.cell)) {
        missing.push_back({series, x, placed.cell->status, {}, result::is_unchecked(*placed.cell)});
      }
      if (!point || (claimed && x < from)) continue;
      if (what == GrownQuantity::time && point->value < enough_seconds) {
        ++small;
        continue;
      }
      points.push_back(*point);
      add_touched(touched, *placed.cell, x);
    }
    PanelGrowth grown{series, claimed, {}, ""};
    if (claimed) {
      const auto meant = panel.axis == "length" ? GrowthClaim::exponent : GrowthClaim::bound;
      grown.fit = fit_growth(points, *claimed, meant);
      excuse(grown.fit, what, ladder, touched);
      withhold(grown.fit, missing, points);
      if (!grown.fit.measured && small > 0) {
        grown.fit.reason +=
            "; cells under 5 ms, whose fixed costs hide the growth: " + std::to_string(small);
      }
      grown.word = claim_word(grown.fit, meant);
    } else {
      grown.fit = fit_growth(points);
    }
    all.push_back(std::move(grown));
  }
  return all;
}

Grid growth_grid(const Panel& panel) {
  Grid grid;
  grid.title = "growth exponents in " + panel.axis;
  std::map<std::string, std::vector<std::string>> texts;
  bool any = false;
  Reasons reasons;
  for (const auto& [what, word] :
       {std::pair{GrownQuantity::time, "time"}, {GrownQuantity::workspace, "workspace"}}) {
    bool fitted = false;
    bool claimed = false;
    const std::vector<PanelGrowth> all = panel_growth(panel, what);
    for (const PanelGrowth& grown : all) {
      fitted = fitted || grown.fit.measured;
      claimed = claimed || grown.claimed;
    }
    if (!fitted && !claimed) continue;
    any = any || fitted;
    grid.columns.push_back(word);
    if (claimed) grid.columns.push_back("claimed");
    for (const PanelGrowth& grown : all) {
      std::vector<std::string>& row = texts[grown.series];
      row.resize(grid.columns.size());
      const std::size_t column = grid.columns.size() - (claimed ? 2 : 1);
      if (grown.fit.measured) row[column] = exponent_text(*grown.fit.measured);
      if (grown.claimed) row[column + 1] = exponent_text(*grown.claimed) + ": " + grown.word;
      add_reason(reasons, word, grown);
    }
  }
  if (!any) return grid;
  grid.note = words_of(reasons);
  for (const std::string& series : panel.series) {
    std::vector<std::string>& row = texts[series];
    row.resize(grid.columns.size());
    bool filled = false;
    for (const std::string& text : row) filled = filled || !text.empty();
    if (filled) grid.rows.emplace_back(series, row);
  }
  return grid;
}

}  // namespace attnbench::reports
