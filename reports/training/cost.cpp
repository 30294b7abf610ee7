#include "reports/training/cost.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;
using result::Selection;
using Order = std::vector<std::string>;

constexpr double kibi = 1024;

bool has_state(const Selection& selection) {
  const Json& metrics = (*selection.choice().cells.front())["metrics"];
  return metrics.contains("state_bytes") && metrics["state_bytes"].is_number();
}

double state_of(const Selection& selection) {
  return metric(*selection.choice().cells.front(), "state_bytes");
}

/// Trainings on the same data.
struct DataSet {
  Panel panel;
  std::vector<Selection> selections;
};

std::vector<DataSet> data_sets_of(const std::vector<const Panel*>& panels) {
  std::vector<DataSet> sets;
  std::map<std::string, std::size_t> place;
  const auto set_of = [&](const Panel& panel, const Json* x) -> DataSet& {
    Panel own = panel;
    own.facet = data_of(panel, x);
    const auto [at, is_new] = place.emplace(own.facet_text(), sets.size());
    if (is_new) {
      own.cells.clear();
      own.series.clear();
      sets.push_back({std::move(own), {}});
    }
    return sets[at->second];
  };
  for (const Panel* panel : panels) {
    for (const Placed& placed : panel->cells) {
      Panel& home = set_of(*panel, placed.x).panel;
      const auto& known = home.series;
      if (std::find(known.begin(), known.end(), placed.series) == known.end()) {
        home.series.push_back(placed.series);
      }
      home.cells.push_back(placed);
    }
    // A learning rate is chosen within one width, where a series is one model.
    for (Selection& selection : result::selections(*panel)) {
      if (!has_state(selection)) continue;
      set_of(*panel, selection.x).selections.push_back(std::move(selection));
    }
  }
  return sets;
}

std::optional<Figure> figure_of(const DataSet& set, const Order& order,
                                const std::vector<PublishedRow>& published) {
  if (set.selections.empty()) return std::nullopt;
  Sketch sketch;
  sketch.what = "accuracy_over_state";
  sketch.title = "Accuracy on the test against the bytes of the state";
  sketch.caption = std::string(chosen_words) +
                   " Dashed steps: the front, which nothing with as little state betters.";
  sketch.y = "accuracy on the test";
  sketch.columns = tooltip_columns("accuracy");
  sketch.columns.insert(sketch.columns.begin() + 2, {"state", "state"});
  sketch.x = logarithmic("state of one sequence after the longest length (KiB)", 2, ",~r");
  sketch.published = published_accuracies(published, set.panel, result::state_bytes);
  std::vector<double> all_bytes;
  for (Published& number : sketch.published) {
    all_bytes.push_back(number.x);
    number.x /= kibi;
  }
  std::vector<std::pair<double, double>> means;
  for (const Selection& selection : set.selections) {
    const double bytes = state_of(selection);
    all_bytes.push_back(bytes);
    means.emplace_back(bytes / kibi, selection.choice().accuracy);
    sketch.rows.push_back(mean_row(selection.series, bytes / kibi, means.back().second));
    for (const Json* cell : selection.choice().cells) {
      Json row = row_of(*cell, selection.series, "dot", bytes / kibi, metric(*cell, "accuracy"));
      row["state"] = result::human_bytes(bytes);
      sketch.rows.push_back(std::move(row));
    }
    add_reach(sketch.rows, selection, bytes / kibi);
  }
  const auto [least, most] = std::minmax_element(all_bytes.begin(), all_bytes.end());
  for (const Selection& selection : set.selections) {
    add_reach_line(sketch.rows, selection, kibi, {*least, *most});
  }
  add_levels(sketch.layers, set.panel);
  add_front(sketch.rows, std::move(means));
  sketch.caption += reach_words(set.selections);
  return sketched(set.panel, order, std::move(sketch));
}

/// Words and units of a kind of cost.
struct CostAxis {
  const char* name;
  const char* title;
  const char* of;  ///< "time of one", "memory at the peak of one"
  Quantity quantity;
  Scale (*scale)(const std::vector<double>&);
  std::string (*words)(double);
};

CostAxis cost_axis(Expense expense) {
  if (expense == Expense::time) {
    return {"accuracy_over_time", "Accuracy on the test against time",
            "time of one",        time_quantity(""),
            time_scale,           [](double seconds) { return result::human_seconds(seconds); }};
  }
  return {"accuracy_over_memory",
          "Accuracy on the test against memory",
          "memory at the peak of one",
          number_quantity("memory", "peak_bytes"),
          byte_scale,
          result::human_bytes};
}

/// The dtype that the mix is computed in; empty where the cell does not say.
std::string mix_dtype(const Json& cell) {
  for (const char* key : {"autocast", "dtype"}) {
    const Json* const said = result::value_of(cell, key);
    if (said && *said != "off") return said->get<std::string>();
  }
  return "";
}

/// Whether both were of the same mechanism at the same size, batches apart.
bool is_the_same(const Json& training, const Json& cost) {
  if (training["label"] != cost["label"] || training["options"] != cost["options"]) return false;
  const auto agree = [&](const char* key) {
    const Json* const a = result::value_of(training, key);
    const Json* const b = result::value_of(cost, key);
    return !a || !b || *a == *b;
  };
  const std::string trained = mix_dtype(training);
  const std::string timed = mix_dtype(cost);
  const bool as_wide = trained.empty() || timed.empty() || trained == timed;
  return as_wide && agree("length") && agree("width") && agree("heads");
}

/// The one timed cell of the training's mechanism, which may have been disturbed; null where there
/// is none, or several that differ in what trainings do not have (a pass, a scope).
const Json* cost_of(const Json& training, const std::vector<const Panel*>& all) {
  const Json* found = nullptr;
  for (const Panel* panel : all) {
    for (const Placed& placed : panel->cells) {
      const Json& cell = *placed.cell;
      const bool ended = result::is_ok(cell) || result::is_disturbed(cell);
      if (!ended || !cell.contains("timing") || !is_the_same(training, cell)) continue;
      if (found) return nullptr;
      found = &cell;
    }
  }
  return found;
}

struct Point {
  const Selection* selection;
  const Json* cost;
  double value;
};

std::string axis_words(const CostAxis& axis, const Json& cost, const std::string& unit) {
  std::string words = std::string(axis.of) + " " + cost.value("primary", "pass");
  const Json& settings = cost["settings"];
  if (settings.contains("scope")) words += " of a " + settings["scope"].get<std::string>();
  if (settings.contains("batch")) words += ", B=" + settings["batch"].dump();
  return words + " (" + unit + ")";
}

std::optional<Figure> figure_of(const CostAxis& axis, const Panel& panel,
                                const std::vector<const Panel*>& all,
                                const std::vector<std::string>& order) {
  const std::vector<Selection> selections = result::selections(panel);
  std::vector<Point> points;
  std::vector<double> values;
  std::size_t disturbed = 0;
  for (const Selection& selection : selections) {
    const Json* const cost = cost_of(*selection.choice().cells.front(), all);
    if (cost && result::is_disturbed(*cost)) {
      ++disturbed;
      continue;
    }
    const auto measured = cost ? axis.quantity(*cost) : std::nullopt;
    if (!measured || measured->value <= 0) continue;
    points.push_back({&selection, cost, measured->value});
    values.push_back(measured->value);
  }
  if (points.empty()) return std::nullopt;
  const Scale scale = axis.scale(values);
  Sketch sketch;
  sketch.what = axis.name;
  sketch.title = axis.title;
  sketch.caption = std::string(chosen_words) +
                   " Dashed steps: the front, which nothing as cheap betters. What it costs is "
                   "measured in the same run by a task of its own.";
  if (const std::size_t missing = selections.size() - points.size(); missing > 0) {
    sketch.caption += " Without a measured cost, and so not here: " + std::to_string(missing);
    if (disturbed > 0) {
      sketch.caption += " (disturbed by other programs: " + std::to_string(disturbed) + ")";
    }
    sketch.caption += ".";
  }
  sketch.y = "accuracy on the test";
  sketch.columns = tooltip_columns("accuracy");
  sketch.columns.insert(sketch.columns.begin() + 2, {"cost", "cost"});
  const std::string x = axis_words(axis, *points.front().cost, scale.unit);
  sketch.x = logarithmic(x.c_str(), 10, ",~r");
  std::vector<std::pair<double, double>> means;
  for (const Point& point : points) {
    const double place = point.value * scale.factor;
    means.emplace_back(place, point.selection->choice().accuracy);
    sketch.rows.push_back(mean_row(point.selection->series, place, means.back().second));
    for (const Json* cell : point.selection->choice().cells) {
      Json row = row_of(*cell, point.selection->series, "dot", place, metric(*cell, "accuracy"));
      row["cost"] = axis.words(point.value);
      sketch.rows.push_back(std::move(row));
    }
  }
  add_levels(sketch.layers, panel);
  add_front(sketch.rows, std::move(means));
  return sketched(panel, order, std::move(sketch));
}

}  // namespace

std::vector<Figure> accuracy_over_state_figures(const std::vector<const Panel*>& panels,
                                                const Order& order,
                                                const std::vector<PublishedRow>& published) {
  std::vector<Figure> figures;
  for (const DataSet& set : data_sets_of(panels)) {
    if (auto figure = figure_of(set, order, published)) figures.push_back(std::move(*figure));
  }
  return figures;
}

std::vector<Figure> accuracy_over_expense_figures(Expense expense,
                                                  const std::vector<const Panel*>& panels,
                                                  const std::vector<const Panel*>& all,
                                                  const std::vector<std::string>& order) {
  const CostAxis axis = cost_axis(expense);
  std::vector<Figure> figures;
  for (const Panel* panel : panels) {
    if (auto figure = figure_of(axis, *panel, all, order)) figures.push_back(std::move(*figure));
  }
  return figures;
}

}  // namespace attnbench::reports
