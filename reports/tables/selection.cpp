#include "reports/tables/selection.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>

#include "core/result/record.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::result {
namespace {

bool ended_well(const Json& cell) { return is_ok(cell) && cell.contains("training"); }

double mean_of(const std::vector<const Json*>& cells, const char* metric) {
  double sum = 0;
  for (const Json* cell : cells) sum += (*cell)["metrics"][metric].get<double>();
  return cells.empty() ? 0 : sum / static_cast<double>(cells.size());
}

/// Whether `a` is chosen rather than `b`.
bool better(const Rate& a, const Rate& b) {
  if (a.cells.empty() != b.cells.empty()) return b.cells.empty();
  if ((a.failed == 0) != (b.failed == 0)) return a.failed == 0;
  return a.validation_accuracy > b.validation_accuracy;
}

void choose(Selection& selection) {
  for (Rate& rate : selection.rates) {
    rate.validation_accuracy = mean_of(rate.cells, "validation_accuracy");
    rate.accuracy = mean_of(rate.cells, "accuracy");
  }
  const std::vector<Rate>& rates = selection.rates;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    if (better(rates[i], rates[selection.chosen])) selection.chosen = i;
    if (rates[i].accuracy > rates[selection.best_test].accuracy) selection.best_test = i;
  }
  const Rate& choice = selection.choice();
  const bool last = selection.chosen == 0 || selection.chosen + 1 == rates.size();
  selection.at_edge = last && choice.validation_accuracy < 1;
  selection.converged = std::all_of(choice.cells.begin(), choice.cells.end(),
                                    [](const Json* cell) { return training_of(*cell)->converged; });
}

using Text = std::function<std::string(const Selection&)>;

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "0.987", "0.987 (0.981 to 0.990)" over seeds, ", still growing" where it has not converged.
std::string accuracy_text(const Selection& selection) {
  const Rate& choice = selection.choice();
  std::string text = number("%.3f", choice.accuracy);
  const auto accuracy = [](const Json* cell) {
    return (*cell)["metrics"]["accuracy"].get<double>();
  };
  if (choice.cells.size() > 1) {
    const auto [low, high] = std::minmax_element(
        choice.cells.begin(), choice.cells.end(),
        [&](const Json* a, const Json* b) { return accuracy(a) < accuracy(b); });
    text += " (" + number("%.3f", accuracy(*low)) + " to " + number("%.3f", accuracy(*high)) + ")";
  }
  if (!selection.converged) text += ", still growing";
  return text;
}

std::string rate_text(const Selection& selection) {
  std::string text = number("%.3g", selection.choice().learning_rate);
  text += " of " + std::to_string(selection.rates.size());
  return selection.at_edge ? text + ", at the edge" : text;
}

/// The rate that the test itself would choose.
std::string best_test_text(const Selection& selection) {
  const Rate& best = selection.rates[selection.best_test];
  return number("%.3f", best.accuracy) + " at " + number("%.3g", best.learning_rate);
}

/// The mean over seeds and segments of a share that the segments of the test have.
double wrong_share(const Selection& selection, double Segment::*kind) {
  double wrong = 0;
  double questions = 0;
  for (const Json* cell : selection.choice().cells) {
    const Training training = training_of(*cell).value();
    for (const Segment& segment : training.test) {
      wrong += segment.questions * segment.*kind;
      questions += segment.questions;
    }
  }
  return questions > 0 ? wrong / questions : 0;
}

std::string wrong_text(const Selection& selection) {
  return number("%.3f", wrong_share(selection, &Segment::wrong_from_context)) + " : " +
         number("%.3f", wrong_share(selection, &Segment::wrong_from_elsewhere));
}

Text mean_metric(const char* name, const std::function<std::string(double)>& words) {
  return [name, words](const Selection& selection) -> std::string {
    double sum = 0;
    for (const Json* cell : selection.choice().cells) {
      const Json& metrics = (*cell)["metrics"];
      if (!metrics.contains(name) || !metrics[name].is_number()) return "";
      sum += metrics[name].get<double>();
    }
    return words(sum / static_cast<double>(selection.choice().cells.size()));
  };
}

bool any_disturbed(const Selection& selection) {
  return std::any_of(selection.choice().cells.begin(), selection.choice().cells.end(),
                     [](const Json* cell) { return training_of(*cell)->disturbed; });
}

/// Examples per second; other programs change how fast it learns, not what.
std::string rate_of_examples(const Selection& selection) {
  const Text rate =
      mean_metric("examples_per_second", [](double mean) { return number("%.0f", mean); });
  const std::string text = rate(selection);
  return text.empty() || !any_disturbed(selection) ? text : text + " disturbed";
}

Grid grid_of(const Panel& panel, const std::vector<Selection>& selected, const std::string& title,
             const Text& text) {
  std::vector<GridEntry> entries;
  for (const Selection& one : selected) entries.push_back({one.series, one.x, text(one)});
  return laid_out(panel, title, entries);
}

}  // namespace

std::vector<Selection> selections(const Panel& panel) {
  std::vector<Selection> found;
  std::map<std::string, std::size_t> place;
  for (const Placed& placed : panel.cells) {
    const Json* rate = value_of(*placed.cell, learning_rate);
    if (rate == nullptr) continue;
    const std::string key = placed.series + "\n" + (placed.x ? placed.x->dump() : "");
    const auto [at, is_new] = place.emplace(key, found.size());
    if (is_new) found.push_back({placed.series, placed.x, {}});
    std::vector<Rate>& rates = found[at->second].rates;
    const double value = rate->get<double>();
    auto own = std::find_if(rates.begin(), rates.end(),
                            [&](const Rate& one) { return one.learning_rate == value; });
    if (own == rates.end()) {
      own = std::find_if(rates.begin(), rates.end(),
                         [&](const Rate& one) { return one.learning_rate > value; });
      own = rates.insert(own, Rate{value, {}, 0, 0, 0});
    }
    if (ended_well(*placed.cell)) {
      own->cells.push_back(placed.cell);
    } else {
      ++own->failed;
    }
  }
  for (Selection& selection : found) choose(selection);
  std::erase_if(found, [](const Selection& one) { return one.choice().cells.empty(); });
  return found;
}

bool has_trainings(const Panel& panel) {
  return std::any_of(panel.cells.begin(), panel.cells.end(),
                     [](const Placed& placed) { return placed.cell->contains("training"); });
}

std::vector<Grid> training_grids(const Panel& panel) {
  const std::vector<Selection> selected = selections(panel);
  const auto grid = [&](const std::string& title, const Text& text) {
    return grid_of(panel, selected, title, text);
  };
  const auto share = [](double value) { return number("%.3f", value); };
  std::vector<Grid> grids{
      grid("accuracy on the test, mean over seeds (range)", accuracy_text),
      grid("learning rate chosen by validation, of how many", rate_text),
      grid("wrong answers, from the sequence : from elsewhere", wrong_text),
      grid("accuracy on examples trained on", mean_metric("train_accuracy", share)),
      grid("state", mean_metric("state_bytes", human_bytes)),
      grid("examples per second", rate_of_examples)};
  if (std::any_of(selected.begin(), selected.end(), any_disturbed)) {
    grids.back().note = "disturbed: other programs had the CPU while it trained";
  }
  grids.front().note =
      "The learning rate is the one with the best mean validation accuracy over seeds.";
  const bool differs = std::any_of(selected.begin(), selected.end(), [](const Selection& one) {
    return one.best_test != one.chosen;
  });
  if (differs) {
    grids.push_back(grid("best test of all learning rates, mean over seeds", best_test_text));
    grids.back().note = "Chosen by the test itself, as many papers do: for comparison with them.";
  }
  return grids;
}

}  // namespace attnbench::result
