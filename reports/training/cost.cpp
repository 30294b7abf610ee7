#include "reports/training/cost.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {
namespace {

constexpr double kibi = 1024;

bool has_state(const Selection& selection) {
  return number_of(selection.choice().cells.front()->metrics, "state_bytes").has_value();
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
  const auto set_of = [&](const Panel& panel, const std::optional<Json>& x) -> DataSet& {
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
    for (Selection& selection : selections(*panel)) {
      if (!has_state(selection)) continue;
      set_of(*panel, selection.x).selections.push_back(std::move(selection));
    }
  }
  return sets;
}

std::optional<Figure> figure_of(const DataSet& set, const Palette& palette,
                                const std::vector<PublishedRow>& published) {
  if (set.selections.empty()) return std::nullopt;
  const Quality& quality = quality_of(set.panel);
  Sketch sketch;
  sketch.what = quality.name + std::string("_over_state");
  sketch.title = quality.title + std::string(" against the bytes of the state");
  const std::vector<Missing> missing = missing_trainings(set.panel);
  sketch.caption = chosen_words(quality) + front_words("with as little state", missing);
  sketch.by_family = true;
  sketch.y = quality.words + std::string(" on the test");
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.words);
  sketch.columns.insert(sketch.columns.begin() + 2, {"state", "state"});
  sketch.x = logarithmic("state of one sequence after the longest length (KiB)", 2, ",~r");
  sketch.published = published_accuracies(published, set.panel, state_bytes);
  std::vector<double> all_bytes;
  for (Published& number : sketch.published) {
    all_bytes.push_back(number.x);
    number.x /= kibi;
  }
  std::vector<Standing> standings;
  for (const Selection& selection : set.selections) {
    const double bytes = state_of(selection);
    all_bytes.push_back(bytes);
    standings.push_back({selection.series, bytes / kibi, selection.choice().test});
    sketch.rows.push_back(mean_row(selection.series, bytes / kibi, selection.choice().test));
    for (const CellRecord* cell : selection.choice().cells) {
      TrainingRow row =
          row_of(*cell, selection.series, "dot", bytes / kibi, metric(*cell, quality.metric));
      row.json.update({{"state", text::human_bytes(bytes)}});
      sketch.rows.push_back(std::move(row));
    }
    add_reach(sketch.rows, selection, bytes / kibi);
  }
  const auto [least, most] = std::minmax_element(all_bytes.begin(), all_bytes.end());
  for (const Selection& selection : set.selections) {
    add_reach_line(sketch.rows, selection, kibi, {*least, *most});
  }
  add_levels(sketch.layers, set.panel, sketch.rows);
  if (missing.empty()) add_front(sketch.rows, std::move(standings), quality);
  sketch.caption += reach_words(set.selections);
  return sketched(set.panel, palette, std::move(sketch));
}

/// Words and units of a kind of cost.
struct CostAxis {
  const char* name;   ///< what follows the quality in the figure's name
  const char* title;  ///< likewise
  const char* of;     ///< "time of one", "memory at the peak of one"
  Quantity quantity;
  Scale (*scale)(const std::vector<double>&);
  std::string (*words)(double);
};

CostAxis cost_axis(Expense expense) {
  if (expense == Expense::time) {
    return {"_over_time",  " against time",
            "time of one", time_quantity(""),
            time_scale,    [](double seconds) { return text::human_seconds(seconds); }};
  }
  return {"_over_memory",
          " against memory",
          "memory at the peak of one",
          number_quantity(&CellRecord::memory, "peak_bytes"),
          byte_scale,
          text::human_bytes};
}

/// The dtype that the mix is computed in; empty where the cell does not say.
std::string mix_dtype(const CellRecord& cell) {
  for (const char* key : {"autocast", "dtype"}) {
    const auto said = value_of(cell, key);
    if (said && *said != "off") return said->get<std::string>();
  }
  return "";
}

/// Whether both were of the same mechanism at the same size, batches apart.
bool is_the_same(const CellRecord& training, const CellRecord& cost) {
  if (training.label != cost.label || training.options != cost.options) return false;
  const auto agree = [&](const char* key) {
    const auto a = value_of(training, key);
    const auto b = value_of(cost, key);
    return !a || !b || *a == *b;
  };
  const std::string trained = mix_dtype(training);
  const std::string timed = mix_dtype(cost);
  const bool as_wide = trained.empty() || timed.empty() || trained == timed;
  return as_wide && stack_of(training) == stack_of(cost) && agree("length") && agree("width") &&
         agree("heads");
}

/// The one timed cell of the training's mechanism, which may have been disturbed; null where there
/// is none, or several that differ in what trainings do not have (a pass, a scope).
const CellRecord* cost_of(const CellRecord& training, const std::vector<const Panel*>& all) {
  const CellRecord* found = nullptr;
  for (const Panel* panel : all) {
    for (const Placed& placed : panel->cells) {
      const CellRecord& cell = *placed.cell;
      const bool ended = result::is_ok(cell) || result::is_disturbed(cell);
      const bool decodes = cell.timing.contains("step");  // a token generated, not a pass
      if (!ended || cell.timing.empty() || decodes || !is_the_same(training, cell)) continue;
      if (found) return nullptr;
      found = &cell;
    }
  }
  return found;
}

/// Where the training's mechanism should have been timed and was not; null where nobody asked.
const CellRecord* missing_cost(const CellRecord& training, const std::vector<const Panel*>& all) {
  for (const Panel* panel : all) {
    for (const Placed& placed : panel->cells) {
      const CellRecord& cell = *placed.cell;
      const bool timed = !cell.training && cell.task != training.task && !result::is_ok(cell);
      if (timed && is_the_same(training, cell)) return &cell;
    }
  }
  return nullptr;
}

struct CostPoint {
  const Selection* selection;
  const CellRecord* cost;
  double value;
};

std::string axis_words(const CostAxis& axis, const CellRecord& cost, const std::string& unit) {
  std::string words = std::string(axis.of) + " " + (cost.primary.empty() ? "pass" : cost.primary);
  const Json* const scope = find_value(cost.settings, "scope");
  const Json* const batch = find_value(cost.settings, "batch");
  if (scope != nullptr) words += " of a " + scope->get<std::string>();
  if (batch != nullptr) words += ", B=" + batch->dump();
  return words + " (" + unit + ")";
}

std::optional<Figure> figure_of(const CostAxis& axis, const Panel& panel,
                                const std::vector<const Panel*>& all, const Palette& palette) {
  const std::vector<Selection> selections = reports::selections(panel);
  std::vector<CostPoint> points;
  std::vector<double> values;
  std::vector<Entrant> entrants;
  for (const Selection& selection : selections) {
    const CellRecord& training = *selection.choice().cells.front();
    const CellRecord* const cost = cost_of(training, all);
    const bool counts = cost && !result::is_disturbed(*cost);
    const auto measured = counts ? axis.quantity(*cost) : std::nullopt;
    if (!measured || measured->value <= 0) {
      if (const CellRecord* const lost = missing_cost(training, all)) {
        entrants.push_back({selection.series, {}, lost->status, {}, result::is_unchecked(*lost)});
      }
      continue;
    }
    points.push_back({&selection, cost, measured->value});
    values.push_back(measured->value);
  }
  if (points.empty()) return std::nullopt;
  const Scale scale = axis.scale(values);
  const Quality& quality = quality_of(panel);
  Sketch sketch;
  sketch.what = quality.name + std::string(axis.name);
  sketch.title = quality.title + std::string(axis.title);
  std::vector<Missing> missing = missing_trainings(panel);
  for (const auto& one : missing_at(entrants, {}, 0, false).below) missing.push_back(one);
  sketch.caption = chosen_words(quality) + front_words("as cheap", missing) +
                   " What it costs is measured in the same run by a task of its own.";
  if (const std::size_t uncosted = selections.size() - points.size(); uncosted > 0) {
    sketch.caption +=
        " Without a measured cost, and so not here: " + std::to_string(uncosted) + ".";
  }
  sketch.by_family = true;
  sketch.y = quality.words + std::string(" on the test");
  sketch.y_encoding = quality_encoding(quality);
  sketch.columns = tooltip_columns(quality.words);
  sketch.columns.insert(sketch.columns.begin() + 2, {"cost", "cost"});
  const std::string x = axis_words(axis, *points.front().cost, scale.unit);
  sketch.x = logarithmic(x.c_str(), 10, ",~r");
  std::vector<Standing> standings;
  for (const CostPoint& point : points) {
    const double place = point.value * scale.factor;
    const std::string& series = point.selection->series;
    const Rate& choice = point.selection->choice();
    standings.push_back({series, place, choice.test});
    sketch.rows.push_back(mean_row(series, place, choice.test));
    for (const CellRecord* cell : choice.cells) {
      TrainingRow row = row_of(*cell, series, "dot", place, metric(*cell, quality.metric));
      row.json.update({{"cost", axis.words(point.value)}});
      sketch.rows.push_back(std::move(row));
    }
  }
  add_levels(sketch.layers, panel, sketch.rows);
  if (missing.empty()) add_front(sketch.rows, std::move(standings), quality);
  return sketched(panel, palette, std::move(sketch));
}

}  // namespace

std::vector<Figure> accuracy_over_state_figures(const std::vector<const Panel*>& panels,
                                                const Palette& palette,
                                                const std::vector<PublishedRow>& published) {
  std::vector<Figure> figures;
  for (const DataSet& set : data_sets_of(panels)) {
    if (auto figure = figure_of(set, palette, published)) figures.push_back(std::move(*figure));
  }
  return figures;
}

std::vector<Figure> accuracy_over_expense_figures(Expense expense,
                                                  const std::vector<const Panel*>& panels,
                                                  const std::vector<const Panel*>& all,
                                                  const Palette& palette) {
  const CostAxis axis = cost_axis(expense);
  std::vector<Figure> figures;
  for (const Panel* panel : panels) {
    if (auto figure = figure_of(axis, *panel, all, palette)) figures.push_back(std::move(*figure));
  }
  return figures;
}

}  // namespace attnbench::reports
