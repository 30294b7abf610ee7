#include "reports/tables/selection.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/result/record.hpp"

namespace attnbench::result {
namespace {

bool ended_well(const Json& cell) { return is_ok(cell) && cell.contains("training"); }

double mean_of(const std::vector<const Json*>& cells, const char* metric) {
  double sum = 0;
  for (const Json* cell : cells) sum += (*cell)["metrics"][metric].get<double>();
  return cells.empty() ? 0 : sum / static_cast<double>(cells.size());
}

/// Whether `a` should speak rather than `b`.
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
  selection.converged = std::all_of(choice.cells.begin(), choice.cells.end(), [](const Json* cell) {
    return (*cell)["training"].value("converged", false);
  });
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

}  // namespace attnbench::result
