#include "reports/tables/selection.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <map>
#include <set>

#include "reports/tables/classes.hpp"
#include "reports/tables/grid.hpp"

namespace attnbench::reports {
namespace {

bool ended_well(const result::CellRecord& cell) { return result::is_ok(cell) && cell.training; }

double mean_of(const std::vector<const result::CellRecord*>& cells, const char* metric) {
  double sum = 0;
  for (const result::CellRecord* cell : cells) sum += number_of(cell->metrics, metric).value_or(0);
  return cells.empty() ? 0 : sum / static_cast<double>(cells.size());
}

/// Whether `a` is chosen rather than `b`.
bool better(const Rate& a, const Rate& b, const Quality& quality) {
  if (a.cells.empty() != b.cells.empty()) return b.cells.empty();
  if ((a.failed == 0) != (b.failed == 0)) return a.failed == 0;
  return quality.better(a.validation, b.validation);
}

/// Whether the test would choose `a` rather than `b`.
bool better_test(const Rate& a, const Rate& b, const Quality& quality) {
  if (a.cells.empty() || b.cells.empty()) return b.cells.empty() && !a.cells.empty();
  return quality.better(a.test, b.test);
}

void choose(Selection& selection) {
  const Quality& quality = *selection.quality;
  for (Rate& rate : selection.rates) {
    rate.validation = mean_of(rate.cells, quality.validation_metric);
    rate.test = mean_of(rate.cells, quality.metric);
  }
  const std::vector<Rate>& rates = selection.rates;
  for (std::size_t i = 1; i < rates.size(); ++i) {
    if (better(rates[i], rates[selection.chosen], quality)) selection.chosen = i;
    if (better_test(rates[i], rates[selection.best_test], quality)) selection.best_test = i;
  }
  const Rate& choice = selection.choice();
  const bool last = selection.chosen == 0 || selection.chosen + 1 == rates.size();
  selection.at_edge = last && quality.better(quality.perfect, choice.validation);
  const auto ended = [&](result::Ending ending) {
    return std::count_if(choice.cells.begin(), choice.cells.end(),
                         [&](const result::CellRecord* cell) {
                           return result::ending_of(*cell->training) == ending;
                         });
  };
  selection.at_chance = static_cast<std::size_t>(ended(result::Ending::at_chance));
  selection.converged = ended(result::Ending::still_learning) == 0 && selection.at_chance == 0;
}

using Text = std::function<std::string(const Selection&)>;

std::string number(const char* format, double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

/// "0.987", "0.987 (0.981 to 0.990)" over seeds, ", still growing" where it has not converged,
/// ", at chance" or ", 1 of 3 at chance" where seeds have learned nothing.
std::string selected_text(const Selection& selection) {
  const Rate& choice = selection.choice();
  std::vector<double> seeds;
  for (const result::CellRecord* cell : choice.cells) {
    seeds.push_back(number_of(cell->metrics, selection.quality->metric).value_or(0));
  }
  const auto [low, high] = std::minmax_element(seeds.begin(), seeds.end());
  std::string text = quality_text(choice.test, *low, *high, seeds.size());
  if (selection.converged) return text;
  if (selection.at_chance == seeds.size()) return text + ", at chance";
  if (selection.at_chance > 0) {
    return text + ", " + std::to_string(selection.at_chance) + " of " +
           std::to_string(seeds.size()) + " at chance";
  }
  return text + (selection.quality->less_is_better ? ", still falling" : ", still growing");
}

std::string rate_text(const Selection& selection) {
  std::string text = number("%.3g", selection.choice().learning_rate);
  text += " of " + std::to_string(selection.rates.size());
  return selection.at_edge ? text + ", at the edge" : text;
}

/// The rate that the test itself would choose.
std::string best_test_text(const Selection& selection) {
  const Rate& best = selection.rates[selection.best_test];
  return number("%.3f", best.test) + " at " + number("%.3g", best.learning_rate);
}

/// The mean over seeds and segments of a share that the segments of the test have; nothing where
/// they have none.
std::optional<double> wrong_share(const Selection& selection,
                                  std::optional<double> result::Segment::*kind) {
  double wrong = 0;
  double questions = 0;
  for (const result::CellRecord* cell : selection.choice().cells) {
    for (const result::Segment& segment : cell->training->test) {
      if (!(segment.*kind)) continue;
      const auto asked = static_cast<double>(segment.questions);
      wrong += asked * *(segment.*kind);
      questions += asked;
    }
  }
  if (questions == 0) return std::nullopt;
  return wrong / questions;
}

std::string wrong_text(const Selection& selection) {
  const auto context = wrong_share(selection, &result::Segment::wrong_from_context);
  const auto elsewhere = wrong_share(selection, &result::Segment::wrong_from_elsewhere);
  if (!context || !elsewhere) return "";
  return number("%.3f", *context) + " : " + number("%.3f", *elsewhere);
}

Text mean_metric(const char* name, const std::function<std::string(double)>& words) {
  return [name, words](const Selection& selection) -> std::string {
    double sum = 0;
    for (const result::CellRecord* cell : selection.choice().cells) {
      const auto value = number_of(cell->metrics, name);
      if (!value) return "";
      sum += *value;
    }
    return words(sum / static_cast<double>(selection.choice().cells.size()));
  };
}

bool any_disturbed(const Selection& selection) {
  return std::any_of(selection.choice().cells.begin(), selection.choice().cells.end(),
                     [](const result::CellRecord* cell) { return cell->training->disturbed; });
}

/// Examples per second; other programs change how fast it learns, not what.
std::string rate_of_examples(const Selection& selection) {
  const Text rate =
      mean_metric("examples_per_second", [](double mean) { return number("%.0f", mean); });
  const std::string text = rate(selection);
  return text.empty() || !any_disturbed(selection) ? text : text + " disturbed";
}

/// " Counts of the training text reach 4.63 bits …", of language models; else empty.
std::string levels_note(const Panel& panel) {
  std::string text;
  for (const result::CountedLevel& level : counted_levels(panel)) {
    text += (text.empty() ? " Held against the training text: " : ", ") + level_words(level) + " " +
            number("%.3f", level.bits_per_byte);
  }
  return text.empty() ? text : text + ".";
}

/// A row for each language model at its chosen learning rate: bits per byte, means over seeds, by
/// the length of the sequences that the test is cut into. Without rows where nothing was longer.
Grid length_grid(const Panel& panel, const std::vector<Selection>& selected) {
  Grid grid;
  grid.note = "The first length is that of training.";
  const bool along = axis_values(panel).size() > 1;
  for (const Selection& one : selected) {
    const std::vector<const result::CellRecord*>& cells = one.choice().cells;
    const std::vector<result::Segment>& segments = cells.front()->training->test;
    if (!one.quality->less_is_better || segments.size() < 2) continue;
    std::vector<std::string> columns, texts;
    for (std::size_t i = 0; i < segments.size(); ++i) {
      double bits = 0;
      for (const result::CellRecord* cell : cells)
        bits += one.quality->of_loss(cell->training->test.at(i).loss.value_or(0));
      columns.push_back(segments[i].segment);
      texts.push_back(number("%.3f", bits / static_cast<double>(cells.size())));
    }
    if (grid.columns.empty()) {
      grid.columns = columns;
      grid.title = one.quality->words + std::string(" of the test by the length of a sequence");
    }
    if (columns != grid.columns) continue;
    grid.rows.emplace_back(
        along && one.x ? one.series + ", " + text::human_value(*one.x) : one.series,
        std::move(texts));
  }
  return grid;
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
  const Quality& quality = quality_of(panel);
  for (const Placed& placed : panel.cells) {
    const auto rate = value_of(*placed.cell, learning_rate);
    if (!rate) continue;
    const std::string key = placed.series + "\n" + (placed.x ? placed.x->dump() : "");
    const auto [at, is_new] = place.emplace(key, found.size());
    if (is_new) {
      found.push_back({placed.series, placed.x, {}});
      found.back().quality = &quality;
    }
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

std::vector<Missing> missing_trainings(const Panel& panel) {
  const auto place_of = [](const Placed& placed) {
    return placed.series + "\n" + (placed.x ? placed.x->dump() : "");
  };
  std::set<std::string> ended;
  for (const Placed& placed : panel.cells) {
    if (ended_well(*placed.cell)) ended.insert(place_of(placed));
  }
  std::vector<Missing> missing;
  for (const Placed& placed : panel.cells) {
    const result::CellRecord& cell = *placed.cell;
    if (!ended.insert(place_of(placed)).second || cell.status == Status::unsupported) continue;
    missing.push_back({placed.series, cell.status, result::is_unchecked(cell)});
  }
  return missing;
}

bool has_trainings(const Panel& panel) {
  return std::any_of(panel.cells.begin(), panel.cells.end(),
                     [](const Placed& placed) { return placed.cell->training.has_value(); });
}

std::vector<Grid> training_grids(const Panel& panel) {
  const std::vector<Selection> selected = selections(panel);
  const auto grid = [&](const std::string& title, const Text& text) {
    return grid_of(panel, selected, title, text);
  };
  const Quality& quality = quality_of(panel);
  const std::string words = quality.words;
  std::vector<Grid> grids{
      grid(words + " on the test, mean over seeds (range)", selected_text),
      grid("learning rate chosen by validation, of how many", rate_text),
      grid("wrong answers, from the sequence : from elsewhere", wrong_text),
      grid(words + (quality.less_is_better ? " of text trained on" : " on examples trained on"),
           mean_metric(quality.train_metric, share_text)),
      grid("state", mean_metric("state_bytes", text::human_bytes)),
      grid("examples per second", rate_of_examples)};
  if (std::any_of(selected.begin(), selected.end(), any_disturbed)) {
    grids.back().note = "disturbed: other programs had the CPU while it trained";
  }
  grids.front().note = std::string("The learning rate is the one with the ") + quality.selected +
                       " over seeds." + levels_note(panel);
  const bool differs = std::any_of(selected.begin(), selected.end(), [](const Selection& one) {
    return one.best_test != one.chosen;
  });
  if (differs) {
    grids.push_back(grid("best test of all learning rates, mean over seeds", best_test_text));
    grids.back().note = "Chosen by the test itself, as many papers do: for comparison with them.";
  }
  Grid classes = class_grid(panel, selected);
  if (!classes.rows.empty()) grids.insert(grids.begin() + 1, std::move(classes));
  Grid lengths = length_grid(panel, selected);
  if (!lengths.rows.empty()) grids.insert(grids.begin() + 1, std::move(lengths));
  return grids;
}

}  // namespace attnbench::reports
