#include "reports/training/rows.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <set>

#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/tables/classes.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/selection.hpp"

namespace attnbench::reports {
namespace {

/// A dashed line over the whole width at `y`, with what it is.
Json level_line(double y, const std::string& what) {
  const Json values = Json::array({{{"y", y}, {"what", what}}});
  const Json place = {{"field", "y"}, {"type", "quantitative"}};
  const Json grey = {{"value", "#888888"}};
  const Json line = {
      {"mark", {{"type", "rule"}, {"strokeDash", {2, 3}}}},
      {"encoding",
       {{"y", place}, {"x", {{"value", 0}}}, {"x2", {{"value", "width"}}}, {"color", grey}}}};
  const Json words = {
      {"mark", {{"type", "text"}, {"align", "right"}, {"dy", -5}, {"fontSize", 10}}},
      {"encoding",
       {{"y", place},
        {"x", {{"value", "width"}}},
        {"text", {{"field", "what"}}},
        {"color", grey}}}};
  return {{"data", {{"values", values}}}, {"layer", {line, words}}};
}

/// The training that stands for the choice.
const result::Training& training_of(const Selection& selection) {
  return *selection.choice().cells.front()->training;
}

}  // namespace

bool any_of_kind(const TrainingRows& rows, const std::string& kind) {
  return std::any_of(rows.begin(), rows.end(),
                     [&](const TrainingRow& row) { return row.kind == kind; });
}

std::vector<std::pair<std::string, std::string>> tooltip_columns(const char* what) {
  return {{"series", "label"},
          {"said", what},
          {"rate", "learning rate"},
          {"seed", "seed"},
          {"ended", "training"}};
}

Json to_json(const TrainingRows& rows) {
  Json list = Json::array();
  for (const TrainingRow& row : rows) list.push_back(row.json);
  return list;
}

std::string share_words(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", share);
  return text.data();
}

double metric(const CellRecord& cell, const char* name) {
  return number_of(cell.metrics, name).value_or(0);
}

const char* ending_words(const result::Training& training) {
  switch (result::ending_of(training)) {
    case result::Ending::converged:
      return "converged";
    case result::Ending::at_chance:
      return "at chance";
    case result::Ending::still_learning:
      break;
  }
  return quality_of(training).less_is_better ? "still falling" : "still growing";
}

TrainingRow row_of(const CellRecord& cell, const std::string& series, const char* kind,
                   const Json& x, double y) {
  Json row = provenance_row(cell);
  const auto text = [&](const char* key) {
    const auto value = value_of(cell, key);
    return value ? text::human_value(*value) : std::string("–");
  };
  row.update({{"kind", kind},
              {"series", series},
              {"x", x},
              {"y", y},
              {"said", share_words(y)},
              {"seed", text(model_seed)},
              {"rate", text(learning_rate)},
              {"ended", ending_words(*cell.training)}});
  return {kind, series, x, y, std::move(row)};
}

TrainingRow predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                          const std::string& said) {
  return {
      "predicted",
      series,
      x,
      y,
      {{"kind", "predicted"}, {"series", series}, {"id", id}, {"x", x}, {"y", y}, {"said", said}}};
}

TrainingRow mean_row(const std::string& series, const Json& x, double y, const std::string& line) {
  return {"mean",
          series,
          x,
          y,
          {{"kind", "mean"},
           {"series", series},
           {"x", x},
           {"y", y},
           {"id", line.empty() ? series : line}}};
}

void add_joined(TrainingRows& rows, TrainingRow dot, const std::string& line) {
  TrainingRow mean = mean_row(dot.series, dot.x, dot.y, line);
  rows.push_back(std::move(dot));
  rows.push_back(std::move(mean));
}

void add_levels(Json& layers, const Panel& panel, const TrainingRows& rows) {
  double most = 0;
  for (const TrainingRow& row : rows) most = std::max(most, row.y);
  const std::vector<result::CountedLevel> counted = counted_levels(panel);
  for (std::size_t i = 0; i < counted.size(); ++i) {
    const double bits = counted[i].bits_per_byte;
    if (bits > 1.1 * most && i + 1 < counted.size()) continue;
    layers.push_back(level_line(bits, level_words(counted[i])));
  }
  std::set<double> guesses;
  std::set<double> chances;
  bool classes = false;
  for (const Placed& placed : panel.cells) {
    const auto& training = placed.cell->training;
    if (!training) continue;
    if (training->guess.value_or(0) > 0) guesses.insert(*training->guess);
    if (training->chance.value_or(0) > 0) chances.insert(*training->chance);
    classes = classes || classifies(*training);
  }
  const bool one_guess = guesses.size() == 1;
  if (one_guess) {
    layers.push_back(level_line(*guesses.begin(), classes
                                                      ? "the most frequent class"
                                                      : "guessing among the sequence's values"));
  }
  // Classes of about one size make one line of two, whose words would lie over each other.
  constexpr double apart = 0.03;
  const bool of_its_own = chances.size() == 1 && *chances.begin() > 0.01 &&
                          !(classes && one_guess && *guesses.begin() - *chances.begin() < apart);
  if (of_its_own) layers.push_back(level_line(*chances.begin(), "chance"));
}

void add_chances(TrainingRows& rows, const Panel& panel) {
  std::map<std::string, std::pair<Json, double>> chances;
  std::set<double> different;
  for (const Placed& placed : panel.cells) {
    if (!placed.x || !placed.cell->training) continue;
    const double chance = placed.cell->training->chance.value_or(0);
    chances[placed.x->dump()] = {*placed.x, chance};
    different.insert(chance);
  }
  if (different.size() < 2) return;
  for (const auto& [key, place] : chances) {
    const auto& [x, y] = place;
    rows.push_back({"chance", "", x, y, {{"kind", "chance"}, {"x", x}, {"y", y}}});
  }
}

void add_reach(TrainingRows& rows, const Selection& selection, const Json& x) {
  const CellRecord& cell = *selection.choice().cells.front();
  const double reach = training_of(selection).reach.value_or(0);
  if (reach > 0) rows.push_back(row_of(cell, selection.series, "reach", x, reach));
}

void add_reach_line(TrainingRows& rows, const Selection& selection, double unit,
                    const std::pair<double, double>& range) {
  const std::optional<result::ReachLine>& line = training_of(selection).reach_line;
  if (!line) return;
  // As the record has it: lines of one id are one.
  const std::string id = Json(*line).dump();
  for (const TrainingRow& row : rows) {
    if (row.kind == "predicted" && row.json.at("id") == id) return;  // another window's
  }
  constexpr double beyond = 1.2;
  for (std::size_t i = 0; i < line->keys.size(); ++i) {
    const auto bytes = static_cast<double>(line->state_bytes[i]);
    if (bytes * beyond < range.first || bytes > range.second * beyond) continue;
    rows.push_back(predicted_row(selection.series, id, bytes / unit, line->reach[i],
                                 share_words(line->reach[i]) + " with a window of " +
                                     std::to_string(line->keys[i]) + " keys"));
  }
}

std::string kept_words(const std::vector<Selection>& selections) {
  std::set<std::string> rules;
  for (const Selection& selection : selections) {
    for (const CellRecord* cell : selection.choice().cells) {
      const auto& chosen = cell->training->selection;
      rules.insert(chosen ? chosen->keep : std::string());
    }
  }
  if (rules.size() != 1 || *rules.begin() != "best_validation") return "";
  return " Scored: the weights of the best validation.";
}

std::string reach_words(const std::vector<Selection>& selections) {
  bool any = false;
  bool stacked = false;
  for (const Selection& selection : selections) {
    const result::Training& training = training_of(selection);
    any = any || training.reach;
    stacked = stacked || training.stacked.value_or(1) > 1;
  }
  if (!any) return "";
  return std::string(
             " Hollow diamonds and dotted lines: what one look-up into a window reaches, predicted "
             "from the test's distances and the layers, not trained") +
         (stacked ? "; windows in several blocks may reach farther." : ".");
}

void add_front(TrainingRows& rows, std::vector<Standing> standings, const Quality& quality) {
  if (standings.size() < 2) return;
  std::sort(standings.begin(), standings.end(), [&](const Standing& a, const Standing& b) {
    return a.cost != b.cost ? a.cost < b.cost : quality.better(a.quality, b.quality);
  });
  std::optional<double> best;
  for (const auto& [series, cost, y] : standings) {
    if (best && !quality.better(y, *best)) continue;
    best = y;
    // The row has no series, which would take the line for that one's.
    rows.push_back({"front", series, cost, y, {{"kind", "front"}, {"x", cost}, {"y", y}}});
  }
}

std::string front_words(const std::string& betters, const std::vector<Missing>& missing) {
  if (missing.empty()) return " Dashed steps: the front, which nothing " + betters + " betters.";
  return " No front is drawn: " + missing_words(missing) + ", and may be on it.";
}

}  // namespace attnbench::reports
