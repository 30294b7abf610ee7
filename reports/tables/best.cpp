#include "reports/tables/best.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "core/result/record.hpp"
#include "reports/tables/missing.hpp"

namespace attnbench::reports {
namespace {

struct Entries {
  std::vector<std::size_t> rows;
  std::vector<Estimate> values;
  std::optional<double> x;
};

std::optional<double> number_at(const std::optional<Json>& x) {
  return x && x->is_number() ? std::optional(x->get<double>()) : std::nullopt;
}

/// The series that have the value somewhere, or could not show whether they have.
std::vector<Entrant> entrants_of(const Panel& panel, const Ranked& value) {
  std::set<std::string> valued, ended;
  for (const Placed& placed : panel.cells) {
    if (result::is_ok(*placed.cell)) ended.insert(placed.series);
    if (value(*placed.cell)) valued.insert(placed.series);
  }
  std::vector<Entrant> entrants;
  for (const Placed& placed : panel.cells) {
    if (ended.contains(placed.series) && !valued.contains(placed.series)) continue;
    entrants.push_back({placed.series, number_at(placed.x), placed.cell->status,
                        value(*placed.cell), result::is_unchecked(*placed.cell)});
  }
  return entrants;
}

/// The medians of the rounds of a cell that is ok, without those that were disturbed.
std::vector<double> counted_rounds(const result::CellRecord& cell, const std::string& what) {
  std::vector<double> seconds;
  const result::Timing* const timing =
      result::is_ok(cell) ? result::timing_of(cell, what) : nullptr;
  if (timing == nullptr) return seconds;
  for (const result::TimingRound& round : timing->rounds) {
    if (!round.disturbed && round.median_seconds > 0) seconds.push_back(round.median_seconds);
  }
  return seconds;
}

/// The column of `x`; the last one, "any", for a cell without a place.
std::size_t column_of(const std::vector<Json>& axis, const std::optional<Json>& x,
                      const std::size_t columns) {
  for (std::size_t i = 0; x && i < axis.size(); ++i) {
    if (axis[i] == *x) return i;
  }
  return columns - 1;
}

}  // namespace

Ranked ranked_times(const Panel& panel, const std::string& what) {
  Scatter scatter;
  for (const Placed& placed : panel.cells) scatter.add(counted_rounds(*placed.cell, what));
  return [scatter, what](const result::CellRecord& cell) -> std::optional<Estimate> {
    const std::size_t rounds = counted_rounds(cell, what).size();
    if (rounds < 2) return std::nullopt;
    const result::Timing& timing = *result::timing_of(cell, what);
    const Spread time = scatter.widened({timing.median_seconds, timing.low_seconds,
                                         timing.high_seconds, timing.interval == "order"},
                                        rounds);
    return Estimate{time.median, time.low, time.high};
  };
}

Ranked exact_bytes(Values result::CellRecord::*part, const char* key) {
  return [part, key](const result::CellRecord& cell) -> std::optional<Estimate> {
    if (!result::is_ok(cell) && !result::is_disturbed(cell)) return std::nullopt;
    const auto bytes = number_of(cell.*part, key);
    if (!bytes) return std::nullopt;
    return Estimate{*bytes, *bytes, *bytes};
  };
}

void mark_least(Grid& grid, const Panel& panel, const Ranked& value) {
  if (panel.axis == state_bytes || grid.columns.empty()) return;  // those have a row for each size
  const std::vector<Json> axis = axis_values(panel);
  const std::vector<Entrant> entrants = entrants_of(panel, value);
  std::map<std::size_t, Entries> columns;
  for (const Placed& placed : panel.cells) {
    const auto number = value(*placed.cell);
    const auto series = std::find(panel.series.begin(), panel.series.end(), placed.series);
    if (!number || series == panel.series.end()) continue;
    Entries& entries = columns[column_of(axis, placed.x, grid.columns.size())];
    entries.rows.push_back(static_cast<std::size_t>(series - panel.series.begin()));
    entries.values.push_back(*number);
    entries.x = number_at(placed.x);
  }
  std::string unmarked;
  for (const auto& [column, entries] : columns) {
    const std::vector<std::size_t> least = least_of(entries.values);
    if (least.size() == entries.values.size()) continue;
    const double bound = entries.values[least.front()].high;
    const auto missing = missing_at(entrants, entries.x, bound, panel.axis == "length").below;
    if (!missing.empty()) {
      unmarked += (unmarked.empty() ? "no best at " : "; at ") + grid.columns[column] + ": " +
                  missing_words(missing);
      continue;
    }
    for (const std::size_t i : least) grid.best.emplace(entries.rows[i], column);
  }
  if (!unmarked.empty()) grid.note.append(grid.note.empty() ? "" : "; ").append(unmarked);
}

}  // namespace attnbench::reports
