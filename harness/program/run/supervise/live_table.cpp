#include "harness/program/run/supervise/live_table.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/option_json.hpp"
#include "core/statistics.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/program/run/folder/disturbance.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/least.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::run {
namespace {

using Json = nlohmann::json;

constexpr std::size_t max_label = 28;

std::optional<Json> value_of(const Cell& cell, const std::string& key) {
  for (const OptionValues* values : {&cell.settings, &cell.options}) {
    const auto found = values->find(key);
    if (found != values->end()) return to_json(found->second);
  }
  return std::nullopt;
}

/// What goes across: the first setting that varies and has numbers alone. Empty without one.
std::string axis_of(const std::vector<const Cell*>& cells) {
  for (const std::string& key : cells.front()->varies.value_or(std::vector<std::string>())) {
    std::set<std::string> values;
    const bool numbers = std::all_of(cells.begin(), cells.end(), [&](const Cell* cell) {
      const auto value = value_of(*cell, key);
      if (value) values.insert(value->dump());
      return !value || value->is_number();
    });
    if (numbers && values.size() > 1) return key;
  }
  return "";
}

/// The label, with what varies besides the axis: "latte, pass=forward".
std::string row_of(const Cell& cell, const std::string& axis) {
  std::string text = cell.label;
  for (const std::string& key : cell.varies.value_or(std::vector<std::string>())) {
    if (key != axis) text += reports::label_part(key, value_of(cell, key).value_or(Json()));
  }
  return text::printable(text);
}

/// The timing that stands for a round; null where it has none.
const result::TimingRound* timing_of(const result::RoundRecord& record) {
  const auto& timing = record.measured.timing;
  if (timing.empty()) return nullptr;
  const auto step = timing.find("step");  // of a decoding the time that counts
  return &(step == timing.end() ? timing.begin() : step)->second;
}

std::vector<std::string> distinct(const std::vector<std::string>& words) {
  std::vector<std::string> all;
  for (const std::string& word : words) {
    if (std::find(all.begin(), all.end(), word) == all.end()) all.push_back(word);
  }
  return all;
}

}  // namespace

LiveTable::LiveTable(const std::vector<Cell>& cells) {
  std::map<std::string, std::vector<const Cell*>> by_task;
  for (const Cell& cell : cells) {
    if (!by_task.contains(cell.task_label)) tasks_.push_back(cell.task_label);
    by_task[cell.task_label].push_back(&cell);
  }
  for (const std::string& task : tasks_) {
    const std::string axis = axis_of(by_task[task]);
    for (const Cell* cell : by_task[task]) {
      const auto value = axis.empty() ? std::nullopt : value_of(*cell, axis);
      const std::string column = value ? axis + " " + text::human_value(*value) : "";
      places_.push_back({cell->id, {task, row_of(*cell, axis), column}});
    }
  }
}

void LiveTable::add(const result::RoundRecord& record) { rounds_[record.cell].push_back(record); }

std::string LiveTable::task_of(const std::string& cell) const {
  const auto found = std::find_if(places_.begin(), places_.end(),
                                  [&](const auto& place) { return place.first == cell; });
  return found == places_.end() ? "" : found->second.task;
}

std::string LiveTable::text_of(const std::string& cell) const {
  const auto found = rounds_.find(cell);
  if (found == rounds_.end()) return unknown_;
  std::vector<double> quiet;
  std::optional<double> least;  // of disturbed rounds
  for (const result::RoundRecord& record : found->second) {
    if (!record.ok()) return to_string(record.status);
    const result::Measured& measured = record.measured;
    if (measured.training) {
      const char* const name = reports::quality_of(*measured.training).metric;
      const auto value = number_of(measured.metrics, name);
      if (value) return reports::share_text(*value);
    }
    if (measured.crossover) {
      return result::crossover_text(result::crossover_over({*measured.crossover}));
    }
    const result::TimingRound* const timing = timing_of(record);
    if (timing == nullptr) continue;
    if (is_disturbed(measured)) {
      const double seconds = reports::least_seconds(*timing);
      least = std::min(least.value_or(seconds), seconds);
    } else {
      quiet.push_back(timing->median_seconds);
    }
  }
  if (!quiet.empty()) return text::human_seconds(median(quiet));
  return least ? "(" + text::human_seconds(*least) + ")" : "ok";
}

std::vector<std::string> LiveTable::lines(const std::string& task, std::size_t width,
                                          std::size_t height) const {
  std::vector<std::string> rows, columns;
  std::map<std::pair<std::string, std::string>, std::string> texts;
  for (const auto& [cell, place] : places_) {
    if (place.task != task) continue;
    rows.push_back(place.row);
    columns.push_back(place.column);
    texts[{place.row, place.column}] = text_of(cell);
  }
  rows = distinct(rows);
  columns = distinct(columns);
  if (texts.size() < 2 || rows.size() + 1 > height) return {};
  const std::string heading = text::printable(task);
  std::size_t label_width = text::display_width(heading);
  for (const std::string& row : rows) label_width = std::max(label_width, text::display_width(row));
  label_width = std::min(label_width, max_label);
  std::vector<std::string> lines{text::pad_right(text::shorten(heading, label_width), label_width)};
  for (const std::string& row : rows) {
    lines.push_back(text::pad_right(text::shorten(row, label_width), label_width));
  }
  std::size_t used = label_width;
  for (const std::string& column : columns) {
    std::size_t column_width = text::display_width(column);
    for (const std::string& row : rows) {
      column_width = std::max(column_width, text::display_width(texts[{row, column}]));
    }
    used += 2 + column_width;
    lines[0] += "  " + text::pad_left(column, column_width);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      lines[i + 1] += "  " + text::pad_left(texts[{rows[i], column}], column_width);
    }
  }
  return used <= width ? lines : std::vector<std::string>{};
}

}  // namespace attnbench::run
