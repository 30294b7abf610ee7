#include "reports/verdict/input.hpp"

#include <algorithm>
#include <array>

#include "core/result/crossover.hpp"
#include "core/text/format.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/provenance.hpp"
#include "reports/tables/best.hpp"
#include "reports/tables/conditions.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/least.hpp"
#include "reports/tables/selection.hpp"

namespace attnbench::reports::verdict {
namespace {

std::optional<double> place_of(const std::optional<Json>& x) {
  return x && x->is_number() ? std::optional(x->get<double>()) : std::nullopt;
}

/// "latte/fused, 32 latents per head"; without the latents where `conditions` names them.
std::string implementation_text(const result::CellRecord& cell, const std::string& conditions) {
  std::string text =
      cell.mechanism + "/" + (cell.chosen ? cell.chosen->implementation : cell.implementation);
  if (conditions.find("latents per head") != std::string::npos) return text;
  const auto latents = value_of(cell, "latents_per_head");
  if (latents && *latents != 0) text += ", " + text::human_value(*latents) + " latents per head";
  return text;
}

/// What cells must share for their times to be compared, besides the axis.
constexpr std::array<const char*, 9> kind_keys{"pattern", "pass",  "scope",    "dtype",  "device",
                                               "batch",   "heads", "head_dim", "key_dim"};

std::string kind_text(const Placed& placed, const std::string& axis, const char* key) {
  if (key == axis) return "";
  const auto value = value_of(*placed.cell, key);
  return value ? text::human_value(*value) : "";
}

std::string kind_of(const Placed& placed, const std::string& axis) {
  std::string kind;
  for (const char* key : kind_keys) kind += kind_text(placed, axis, key) + "\n";
  return kind;
}

/// ", ranked: causal" where the cells of one place are of several kinds: that of exact attention.
std::string ranked_words(const Panel& panel) {
  const auto ranked = std::find_if(panel.cells.begin(), panel.cells.end(),
                                   [](const Placed& one) { return is_exact(*one.cell); });
  const Placed& own = ranked == panel.cells.end() ? panel.cells.front() : *ranked;
  std::string text;
  for (const char* key : kind_keys) {
    const bool differs =
        std::any_of(panel.cells.begin(), panel.cells.end(), [&](const Placed& one) {
          return (one.x == own.x || !one.x || !own.x) &&
                 kind_text(one, panel.axis, key) != kind_text(own, panel.axis, key);
        });
    if (!differs) continue;
    text += (text.empty() ? "ranked: " : " ") + kind_text(own, panel.axis, key);
  }
  return text;
}

Candidate cell_of(const Placed& placed, const std::string& axis, const std::string& conditions,
                  const Ranked& ranked_time) {
  const result::CellRecord& record = *placed.cell;
  Candidate cell;
  cell.id = record.id;
  cell.label = placed.series;
  // Along an axis of words each value is a line of its own.
  if (placed.x && !placed.x->is_number()) {
    cell.label += label_part(axis, *placed.x);
  }
  cell.mechanism = record.mechanism;
  cell.kind = kind_of(placed, axis);
  cell.implementation = implementation_text(record, conditions);
  cell.exact = is_exact(record);
  cell.x = place_of(placed.x);
  cell.status = record.status;
  cell.unchecked = result::is_unchecked(record);
  if (const result::Timing* const timing = result::timing_of(record)) {
    const std::optional<Time> time = ranked_time(record);
    cell.over_rounds = time.has_value();
    cell.time =
        time.value_or(Time{timing->median_seconds, timing->low_seconds, timing->high_seconds});
  }
  if (result::is_disturbed(record)) {
    const result::Timing* const timing = result::timing_of(record);
    if (timing != nullptr) cell.least_seconds = least_seconds(*timing);
  }
  cell.workspace_bytes = number_of(record.memory, "workspace_bytes");
  cell.state_bytes = number_of(record.metrics, "state_bytes");
  if (result::is_ok(record) && record.crossover) {
    cell.crossover = result::crossover_text(*record.crossover);
  }
  return cell;
}

/// Along an option of the mechanism each value is another model, with a label of its own.
Accuracy accuracy_of(const Selection& selection, const std::string& axis) {
  const Rate& choice = selection.choice();
  Accuracy one;
  one.label = selection.series;
  if (selection.x && choice.cells.front()->options.contains(axis)) {
    one.label += label_part(axis, *selection.x);
  }
  one.x = place_of(selection.x);
  one.mean = one.low = one.high = choice.test;
  one.seeds = choice.cells.size();
  for (const result::CellRecord* cell : choice.cells) {
    const double own = number_of(cell->metrics, selection.quality->metric).value_or(choice.test);
    one.low = std::min(one.low, own);
    one.high = std::max(one.high, own);
    one.state_bytes = number_of(cell->metrics, "state_bytes");
  }
  return one;
}

/// A decoding's length is that of its context; the tokens that follow are its steps.
void tell_of_decoding(PanelQuestion& question, const Panel& panel) {
  if (question.axis == "length") question.place = "a context of length";
  const auto steps = value_of(*panel.cells.front().cell, "steps");
  const bool shared =
      std::all_of(panel.cells.begin(), panel.cells.end(),
                  [&](const Placed& placed) { return value_of(*placed.cell, "steps") == steps; });
  if (!shared || !steps || question.axis == "steps") return;
  question.conditions += (question.conditions.empty() ? "" : ", ") + text::human_value(*steps) +
                         (*steps == 1 ? " token decoded" : " tokens decoded");
}

PanelQuestion question_of(const Panel& panel) {
  PanelQuestion question;
  question.task = panel.task_label;
  if (!panel.facet.empty()) question.task += ", " + panel.facet_text();
  question.axis = panel.axis;
  question.conditions = shared_settings(panel);
  if (panel.task == "decode") tell_of_decoding(question, panel);
  if (const std::string ranked = ranked_words(panel); !ranked.empty()) {
    question.conditions += (question.conditions.empty() ? "" : ", ") + ranked;
  }
  const Ranked ranked_time = ranked_times(panel);
  for (const Placed& placed : panel.cells) {
    question.cells.push_back(cell_of(placed, panel.axis, question.conditions, ranked_time));
    const std::string& primary = placed.cell->primary;
    if (question.what.empty()) question.what = primary;
    if (question.what != primary && !primary.empty()) question.what = "time";
    // The state is that after the context, which says nothing of the tokens decoded since.
    if (panel.task == "decode" && panel.axis == "steps") {
      question.cells.back().state_bytes.reset();
    }
  }
  if (has_trainings(panel)) {
    const Quality& quality = quality_of(panel);
    if (quality.less_is_better) {
      question.measure = {quality.words, quality.plural, quality.best, true};
    }
    for (const Selection& selection : selections(panel)) {
      question.accuracies.push_back(accuracy_of(selection, panel.axis));
    }
    question.untrained = missing_trainings(panel);
    // A training's own time is not what it is judged by.
    for (Candidate& cell : question.cells) cell.time.reset();
  }
  return question;
}

}  // namespace

VerdictInput input_of(const result::Result& result) {
  VerdictInput input;
  input.machine = machine_text(result);
  for (const Panel& panel : panels(result)) {
    input.questions.push_back(question_of(panel));
  }
  return input;
}

std::vector<CrossingStatement> crossings_of(const Panel& panel) {
  return judge({"", {question_of(panel)}}).answers.front().crossings;
}

Verdict verdict_of(const result::Result& result) { return judge(input_of(result)); }

}  // namespace attnbench::reports::verdict
