#include "reports/training/state.hpp"

#include <algorithm>
#include <map>

#include "core/text/format.hpp"
#include "reports/training/data.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/levels.hpp"

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
struct Course {
  Panel panel;
  std::vector<Selection> selections;
};

std::vector<Course> courses_of(const std::vector<const Panel*>& panels) {
  std::vector<Course> courses;
  std::map<std::string, std::size_t> place;
  const auto course_of = [&](const Panel& panel, const Json* x) -> Course& {
    Panel own = panel;
    own.facet = data_of(panel, x);
    const auto [at, is_new] = place.emplace(own.facet_text(), courses.size());
    if (is_new) {
      own.cells.clear();
      own.series.clear();
      courses.push_back({std::move(own), {}});
    }
    return courses[at->second];
  };
  for (const Panel* panel : panels) {
    for (const Placed& placed : panel->cells) {
      Panel& home = course_of(*panel, placed.x).panel;
      const auto& known = home.series;
      if (std::find(known.begin(), known.end(), placed.series) == known.end()) {
        home.series.push_back(placed.series);
      }
      home.cells.push_back(placed);
    }
    // A learning rate is chosen within one width, where a series is one model.
    for (Selection& selection : result::selections(*panel)) {
      if (!has_state(selection)) continue;
      course_of(*panel, selection.x).selections.push_back(std::move(selection));
    }
  }
  return courses;
}

std::optional<Figure> figure_of(const Course& course, const Order& order,
                                const std::vector<PublishedRow>& published) {
  if (course.selections.empty()) return std::nullopt;
  Sketch sketch;
  sketch.what = "accuracy_over_state";
  sketch.title = "Accuracy on the test against the bytes of the state";
  sketch.caption = std::string(chosen_words) +
                   " Dashed steps: the front, which nothing with as little state betters.";
  sketch.y = "accuracy on the test";
  sketch.told = told_of("accuracy");
  sketch.told.insert(sketch.told.begin() + 2, {"state", "state"});
  sketch.x = logarithmic("state of one sequence after the longest length (KiB)", 2, ",~r");
  sketch.published = published_accuracies(published, course.panel, result::state_bytes);
  std::vector<double> all_bytes;
  for (Published& number : sketch.published) {
    all_bytes.push_back(number.x);
    number.x /= kibi;
  }
  std::vector<std::pair<double, double>> means;
  for (const Selection& selection : course.selections) {
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
  for (const Selection& selection : course.selections) {
    add_reach_line(sketch.rows, selection, kibi, {*least, *most});
  }
  add_levels(sketch.layers, course.panel);
  add_front(sketch.rows, std::move(means));
  sketch.caption += reach_words(course.selections);
  return sketched(course.panel, order, std::move(sketch));
}

}  // namespace

std::vector<Figure> accuracy_over_state_figures(const std::vector<const Panel*>& panels,
                                                const Order& order,
                                                const std::vector<PublishedRow>& published) {
  std::vector<Figure> figures;
  for (const Course& course : courses_of(panels)) {
    if (auto figure = figure_of(course, order, published)) figures.push_back(std::move(*figure));
  }
  return figures;
}

}  // namespace attnbench::reports
