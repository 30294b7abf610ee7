#include "reports/training/expense.hpp"

#include <optional>
#include <utility>

#include "core/result/record.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/levels.hpp"

namespace attnbench::reports {
namespace {

using result::Panel;
using result::Placed;
using result::Selection;

/// What is told apart in words and units.
struct Manner {
  const char* name;
  const char* title;
  const char* of;  ///< "time of one", "memory at the peak of one"
  Quantity quantity;
  Scale (*scale)(const std::vector<double>&);
  std::string (*words)(double);
};

Manner manner_of(Expense expense) {
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

/// In which the mix is computed; empty where the cell does not say.
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

std::string axis_words(const Manner& manner, const Json& cost, const std::string& unit) {
  std::string words = std::string(manner.of) + " " + cost.value("primary", "pass");
  const Json& settings = cost["settings"];
  if (settings.contains("scope")) words += " of a " + settings["scope"].get<std::string>();
  if (settings.contains("batch")) words += ", B=" + settings["batch"].dump();
  return words + " (" + unit + ")";
}

std::optional<Figure> figure_of(const Manner& manner, const Panel& panel,
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
    const auto measured = cost ? manner.quantity(*cost) : std::nullopt;
    if (!measured || measured->value <= 0) continue;
    points.push_back({&selection, cost, measured->value});
    values.push_back(measured->value);
  }
  if (points.empty()) return std::nullopt;
  const Scale scale = manner.scale(values);
  Sketch sketch;
  sketch.what = manner.name;
  sketch.title = manner.title;
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
  sketch.told = told_of("accuracy");
  sketch.told.insert(sketch.told.begin() + 2, {"cost", "cost"});
  const std::string x = axis_words(manner, *points.front().cost, scale.unit);
  sketch.x = logarithmic(x.c_str(), 10, ",~r");
  std::vector<std::pair<double, double>> means;
  for (const Point& point : points) {
    const double place = point.value * scale.factor;
    means.emplace_back(place, point.selection->choice().accuracy);
    sketch.rows.push_back(mean_row(point.selection->series, place, means.back().second));
    for (const Json* cell : point.selection->choice().cells) {
      Json row = row_of(*cell, point.selection->series, "dot", place, metric(*cell, "accuracy"));
      row["cost"] = manner.words(point.value);
      sketch.rows.push_back(std::move(row));
    }
  }
  add_levels(sketch.layers, panel);
  add_front(sketch.rows, std::move(means));
  return sketched(panel, order, std::move(sketch));
}

}  // namespace

std::vector<Figure> accuracy_over_expense_figures(Expense expense,
                                                  const std::vector<const Panel*>& panels,
                                                  const std::vector<const Panel*>& all,
                                                  const std::vector<std::string>& order) {
  const Manner manner = manner_of(expense);
  std::vector<Figure> figures;
  for (const Panel* panel : panels) {
    if (auto figure = figure_of(manner, *panel, all, order)) figures.push_back(std::move(*figure));
  }
  return figures;
}

}  // namespace attnbench::reports
