#include "reports/tables/classes.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/text/format.hpp"
#include "reports/tables/quality.hpp"

namespace attnbench::reports {
namespace {

using Cells = std::vector<const result::CellRecord*>;

/// "-" unless every seed has the number.
template <typename Number>
std::string mean_text(const Cells& cells, Number number) {
  double sum = 0;
  for (const result::CellRecord* cell : cells) {
    const std::optional<double> value = number(*cell->training);
    if (!value) return "-";
    sum += *value;
  }
  return cells.empty() ? "-" : share_text(sum / static_cast<double>(cells.size()));
}

/// The test accuracy of the weights that a rule selects.
std::string rule_text(const Cells& cells, const result::Selected result::WeightSelection::*rule) {
  return mean_text(cells, [&](const result::Training& training) -> std::optional<double> {
    if (!training.selection) return std::nullopt;
    return ((*training.selection).*rule).test_accuracy;
  });
}

std::string best_test_words(const Cells& cells) {
  return mean_text(cells, [](const result::Training& training) -> std::optional<double> {
    if (!training.selection || !training.selection->best_test) return std::nullopt;
    return training.selection->best_test->test_accuracy;
  });
}

std::string of_seeds(std::size_t count, std::size_t seeds) {
  return std::to_string(count) + " of " + std::to_string(seeds);
}

/// "1,200 (2 of 3)": the lower median of those that got there, and how many did.
std::string above_text(const Cells& cells, std::size_t seeds) {
  std::vector<std::int64_t> steps;
  for (const result::CellRecord* cell : cells) {
    if (const auto step = step_above_chance(*cell->training)) steps.push_back(*step);
  }
  if (steps.empty()) return "never";
  std::sort(steps.begin(), steps.end());
  const std::int64_t median = steps[(steps.size() - 1) / 2];
  return std::to_string(median) + " (" + of_seeds(steps.size(), seeds) + ")";
}

bool has_two_classes(const Cells& cells) {
  return std::all_of(cells.begin(), cells.end(), [](const result::CellRecord* cell) {
    return cell->training->confusion.size() == 2 &&
           cell->training->guess.value_or(0) < above_chance;
  });
}

/// "last" or "best_validation" where all are alike; empty otherwise.
std::string kept(const std::vector<Selection>& selections) {
  std::string rule;
  for (const Selection& selection : selections) {
    for (const result::CellRecord* cell : selection.choice().cells) {
      if (!cell->training->selection) continue;
      const std::string& own = cell->training->selection->keep;
      if (!rule.empty() && rule != own) return "";
      rule = own;
    }
  }
  return rule;
}

std::string note_of(const std::vector<Selection>& selections) {
  const std::string rule = kept(selections);
  std::string note = rule == "last"              ? "Everything else is of the last weights."
                     : rule == "best_validation" ? "Everything else is of the best validation."
                                                 : "";
  if (!note.empty()) note += " ";
  return note + "Learned: " + text::human_value(learned_margin) +
         " above the most frequent class. The best test is chosen by the test itself.";
}

}  // namespace

bool classifies(const result::Training& training) { return !training.confusion.empty(); }

bool learned(const result::CellRecord& cell) {
  const auto accuracy = number_of(cell.metrics, "accuracy");
  return accuracy && cell.training && cell.training->guess &&
         *accuracy >= *cell.training->guess + learned_margin;
}

std::optional<std::int64_t> step_above_chance(const result::Training& training) {
  for (const result::CurvePoint& point : training.curve) {
    if (point.step && point.validation_accuracy > above_chance) return point.step;
  }
  return std::nullopt;
}

Grid class_grid(const Panel& panel, const std::vector<Selection>& selections) {
  std::vector<Selection> classified;
  for (const Selection& one : selections) {
    const Cells& cells = one.choice().cells;
    if (std::all_of(cells.begin(), cells.end(),
                    [](const result::CellRecord* cell) { return classifies(*cell->training); })) {
      classified.push_back(one);
    }
  }
  Grid grid;
  if (classified.empty()) return grid;
  grid.title = "accuracy on the test by the rule that selects the weights";
  grid.note = note_of(classified);
  grid.columns = {"last", "best validation", "best test", "most frequent class", "learned"};
  const bool two = std::all_of(classified.begin(), classified.end(), [](const Selection& one) {
    return has_two_classes(one.choice().cells);
  });
  if (two) grid.columns.emplace_back("step above 55 %");
  const bool along = axis_values(panel).size() > 1;
  for (const Selection& one : classified) {
    const Cells& cells = one.choice().cells;
    const std::size_t seeds = cells.size() + one.choice().failed;
    const auto count = static_cast<std::size_t>(std::count_if(
        cells.begin(), cells.end(), [](const result::CellRecord* cell) { return learned(*cell); }));
    std::vector<std::string> texts{
        rule_text(cells, &result::WeightSelection::last),
        rule_text(cells, &result::WeightSelection::best_validation), best_test_words(cells),
        mean_text(cells, [](const result::Training& training) { return training.guess; }),
        of_seeds(count, seeds)};
    if (two) texts.push_back(above_text(cells, seeds));
    grid.rows.emplace_back(
        along && one.x ? one.series + ", " + text::human_value(*one.x) : one.series,
        std::move(texts));
  }
  return grid;
}

}  // namespace attnbench::reports
