#include "reports/verdict/ranking_table.hpp"

#include <algorithm>
#include <functional>
#include <set>

#include "reports/tables/least.hpp"
#include "reports/tables/quality.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {

std::string where_text(const Ranking& ranking) {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : "; ") + part; };
  if (!ranking.timed.empty()) {
    std::string times = "time of the " + ranking.timed;
    if (ranking.at) {
      times += " at " + ranking.place + " " + place_text(ranking.axis, *ranking.at);
    }
    if (!ranking.against.empty()) times += ", over exact attention (" + ranking.against + ")";
    add(times);
  }
  if (!ranking.step_place.empty()) {
    add("steps at " + ranking.step_place +
        (ranking.step_conditions.empty() ? "" : " (" + ranking.step_conditions + ")"));
  }
  if (!ranking.quality_of.empty()) add(ranking.measure.words + " of " + ranking.quality_of);
  if (!ranking.conditions.empty()) add(ranking.conditions);
  return text;
}

namespace {

/// Whether a row is a competitor without a value: what is not supported or does not fit into memory
/// is none.
bool is_missing(const RankedRow& row) {
  return row.ended && *row.ended != Status::ok && *row.ended != Status::disturbed &&
         *row.ended != Status::unsupported && *row.ended != Status::out_of_memory;
}

/// The rows with the least bytes; none where all have the same, or a competitor has none.
std::set<std::size_t> least_bytes(const std::vector<RankedRow>& rows,
                                  std::optional<double> RankedRow::*bytes) {
  std::set<double> values;
  for (const RankedRow& row : rows) {
    if (row.*bytes) values.insert(*(row.*bytes));
    if (!(row.*bytes) && is_missing(row)) return {};
  }
  std::set<std::size_t> least;
  for (std::size_t i = 0; i < rows.size() && values.size() > 1; ++i) {
    if (rows[i].*bytes && *(rows[i].*bytes) == *values.begin()) least.insert(i);
  }
  return least;
}

/// The columns of a grid, of which those without any text are left out.
class Columns {
 public:
  explicit Columns(const std::vector<RankedRow>& rows) : rows_(rows) {
    for (const RankedRow& row : rows) grid_.rows.push_back({row.label, {}});
  }
  void add(const std::string& title, const std::function<std::string(const RankedRow&)>& text,
           const std::set<std::size_t>& best = {}) {
    std::vector<std::string> texts;
    for (const RankedRow& row : rows_) texts.push_back(text(row));
    const auto empty = [](const std::string& one) { return one.empty(); };
    if (std::all_of(texts.begin(), texts.end(), empty)) return;
    for (std::size_t i = 0; i < texts.size(); ++i) {
      if (best.contains(i)) grid_.best.insert({i, grid_.columns.size()});
      grid_.rows[i].second.push_back(texts[i]);
    }
    grid_.columns.push_back(title);
  }
  void add_bytes(const std::string& title, std::optional<double> RankedRow::*bytes) {
    add(
        title,
        [bytes](const RankedRow& row) {
          return row.*bytes ? text::human_bytes(*(row.*bytes)) : std::string();
        },
        least_bytes(rows_, bytes));
  }
  std::set<std::size_t> marked(bool RankedRow::*mark) const {
    std::set<std::size_t> all;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      if (rows_[i].*mark) all.insert(i);
    }
    return all;
  }
  Grid take() { return std::move(grid_); }

 private:
  const std::vector<RankedRow>& rows_;
  Grid grid_;
};

}  // namespace

Grid grid_of(const Ranking& ranking, text::Letters letters) {
  const auto seconds = [letters](const std::optional<Time>& time,
                                 const std::optional<double>& least) {
    if (time) return text::measured_seconds(time->median, time->low, time->high, letters);
    return least ? least_text(*least, letters) : std::string();
  };
  Columns columns(ranking.rows);
  const auto add_quality = [&] {
    columns.add(
        ranking.measure.words,
        [](const RankedRow& row) {
          if (!row.quality) return std::string();
          const auto& [label, x, mean, low, high, seeds, bytes] = *row.quality;
          return quality_text(mean, low, high, seeds);
        },
        columns.marked(&RankedRow::best_quality));
  };
  if (ranking.by_quality) add_quality();
  if (!ranking.timed.empty()) {
    columns.add(
        "time",
        [&](const RankedRow& row) {
          if (row.time || row.least_seconds || !row.ended) {
            return seconds(row.time, row.least_seconds);
          }
          return *row.ended == Status::ok ? "one process" : std::string(to_string(*row.ended));
        },
        columns.marked(&RankedRow::fastest));
    columns.add("x exact", [](const RankedRow& row) {
      if (row.exact) return std::string("exact");
      return row.speedup ? times_text(*row.speedup) : std::string();
    });
    columns.add("faster from", [](const RankedRow& row) { return row.faster_from; });
    columns.add_bytes("workspace", &RankedRow::workspace_bytes);
  }
  columns.add(
      "step", [&](const RankedRow& row) { return seconds(row.step, row.least_step_seconds); },
      columns.marked(&RankedRow::fastest_step));
  if (!ranking.by_quality) add_quality();
  columns.add_bytes("state", &RankedRow::state_bytes);
  Grid grid = columns.take();
  grid.note = where_text(ranking);
  return grid;
}

}  // namespace attnbench::reports::verdict
