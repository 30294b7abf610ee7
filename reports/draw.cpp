#include "reports/draw.hpp"

#include <algorithm>
#include <functional>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "reports/figures/kinds.hpp"
#include "reports/figures/spec.hpp"
#include "reports/training/accuracy.hpp"
#include "reports/training/confusion.hpp"
#include "reports/training/cost.hpp"
#include "reports/training/frame.hpp"
#include "reports/training/latents.hpp"
#include "reports/verdict/around.hpp"
#include "reports/verdict/input.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports {
namespace {

using Rows = std::vector<PublishedRow>;
using Figures = std::vector<Figure>;

std::string seconds_words(double seconds) { return text::human_seconds(seconds); }

void add(Figures& figures, std::optional<Figure> figure) {
  if (figure) figures.push_back(std::move(*figure));
}

/// What the panel's times are of, where its cells agree.
std::string timed(const Panel& panel) {
  std::string what;
  for (const Placed& placed : panel.cells) {
    const std::string& primary = placed.cell->primary.empty() ? what : placed.cell->primary;
    if (!what.empty() && primary != what) return "what each cell times";
    what = primary;
  }
  if (what == "forward") return "one forward pass";
  if (what == "backward") return "one backward pass";
  if (what == "forward+backward") return "one forward and backward pass";
  return what == "step" ? "one generated token" : what;
}

Figures time_of(const Panel& panel, const Palette& palette, const LineRequest& request) {
  Figures figures;
  add(figures, line_figure(panel, palette, request));
  return figures;
}

LineRequest time_request(const std::string& what, const std::string& title,
                         const std::string& timing) {
  LineRequest request;
  request.what = what;
  request.title = title;
  request.axis = "time";
  request.caption =
      "Median over rounds in fresh processes; bars and bands: the interval over rounds.";
  request.quantity = time_quantity(timing);
  request.disturbed = disturbed_time_quantity(timing);
  request.words = seconds_words;
  return request;
}

LineRequest byte_request(const std::string& what, const std::string& title, const std::string& axis,
                         Values result::CellRecord::*part, const std::string& key) {
  LineRequest request;
  request.what = what;
  request.title = title;
  request.axis = axis;
  request.quantity = number_quantity(part, key);
  request.scale = byte_scale;
  request.words = text::human_bytes;
  return request;
}

/// Where lines come to lie below exact attention.
std::vector<LineCrossing> crossings_on(const Panel& panel) {
  std::vector<LineCrossing> all;
  if (!panel.ranked) return all;
  for (const verdict::CrossingStatement& one : verdict::crossings_of(panel)) {
    if (one.crossing != verdict::CrossingKind::found || one.within_gap) continue;
    all.push_back({one.label, one.length, one.low, one.high,
                   "faster than exact attention (" + one.against + ") " + verdict::text_of(one),
                   verdict::command_around(panel, one)});
  }
  return all;
}

/// Adds the figure on the paper's axes, where they are known and not those of the plain one.
void add_on_paper_axes(Figures& figures, Panel panel, const Palette& palette, LineRequest request) {
  const PaperAxes& paper = panel.paper;
  if (!paper.logarithmic || *paper.logarithmic == is_logarithmic(panel)) return;
  panel.logarithmic = paper.logarithmic;
  request.what = "paper_" + request.what;
  request.title += ", on the paper's axes";
  request.caption += " Axes as in " + paper.figure + ", by " + paper.source + ".";
  add(figures, line_figure(panel, palette, request));
}

LineRequest peak_request(const Panel& panel, const Rows& published) {
  LineRequest request = byte_request("peak_memory", "Peak memory, inputs and outputs included",
                                     "peak", &result::CellRecord::memory, "peak_bytes");
  request.caption = "Counted by the allocator in a pass of its own.";
  request.published = published_bytes(published, panel);
  request.unit = panel.paper.memory_unit;
  return request;
}

Figures draw_time(const Panel& panel, const Palette& palette, const Rows& published) {
  LineRequest request = time_request("time", "Time of " + timed(panel), "");
  request.published = published_times(published, panel);
  request.crossings = crossings_on(panel);
  request.unit = panel.paper.time_unit;
  Figures figures = time_of(panel, palette, request);
  add_on_paper_axes(figures, panel, palette, request);
  // Beside it, as in the paper.
  if (!panel.paper.memory_unit.empty()) {
    add_on_paper_axes(figures, panel, palette, peak_request(panel, published));
  }
  return figures;
}

Figures draw_step_time(const Panel& panel, const Palette& palette, const Rows& published) {
  LineRequest request = time_request("step_time", "Time of one generated token", "step");
  request.published = published_times(published, panel);
  const bool primary = std::all_of(panel.cells.begin(), panel.cells.end(), [](const Placed& one) {
    return one.cell->primary.empty() || one.cell->primary == "step";
  });
  if (primary) request.crossings = crossings_on(panel);
  return time_of(panel, palette, request);
}

Figures draw_prefill_time(const Panel& panel, const Palette& palette, const Rows&) {
  return time_of(panel, palette,
                 time_request("prefill_time", "Time of taking in the context", "prefill"));
}

Figures draw_generation_time(const Panel& panel, const Palette& palette, const Rows&) {
  return time_of(panel, palette,
                 time_request("generation_time", "Time of prefill and generation", "generation"));
}

Figures draw_memory(const Panel& panel, const Palette& palette, const Rows& published) {
  Figures figures;
  LineRequest workspace = byte_request("workspace", "Workspace: memory beyond inputs and outputs",
                                       "workspace", &result::CellRecord::memory, "workspace_bytes");
  const LineRequest peak = peak_request(panel, published);
  workspace.caption = peak.caption;
  add(figures, line_figure(panel, palette, workspace));
  add(figures, line_figure(panel, palette, peak));
  return figures;
}

Figures draw_state(const Panel& panel, const Palette& palette, const Rows&) {
  Figures figures;
  LineRequest request = byte_request("state", "State carried from token to token", "state",
                                     &result::CellRecord::metrics, "state_bytes");
  request.caption = "Of one layer, for the whole batch.";
  add(figures, line_figure(panel, palette, request));
  return figures;
}

Figures draw_slopes(const Panel& panel, const Palette& palette, const Rows&) {
  Figures figures;
  add(figures, slopes_figure(panel, palette, GrownQuantity::time));
  return figures;
}

Figures draw_memory_slopes(const Panel& panel, const Palette& palette, const Rows&) {
  Figures figures;
  add(figures, slopes_figure(panel, palette, GrownQuantity::workspace));
  return figures;
}

Figures draw_speedup(const Panel& panel, const Palette& palette, const Rows& published) {
  Figures figures;
  add(figures, speedup_figure(panel, palette, published, ""));
  return figures;
}

Figures draw_generation_speedup(const Panel& panel, const Palette& palette, const Rows& published) {
  Figures figures;
  add(figures, speedup_figure(panel, palette, published, "generation"));
  return figures;
}

Figures draw_roofline(const Panel& panel, const Palette& palette, const Rows&) {
  Figures figures;
  add(figures, roofline_figure(panel, palette));
  return figures;
}

Figures draw_crossover(const Panel& panel, const Palette& palette, const Rows&) {
  return draw_across("crossover", {&panel}, {&panel}, palette, {});
}

Figures draw_accuracy(const Panel& panel, const Palette& palette, const Rows& published) {
  Figures figures;
  add(figures, accuracy_figure(panel, palette, published));
  return figures;
}

Figures draw_accuracy_over_state(const Panel& panel, const Palette& palette,
                                 const Rows& published) {
  return accuracy_over_state_figures({&panel}, palette, published);
}

/// Without the panels of another task there is nothing to draw it over.
template <Expense expense>
Figures draw_accuracy_over(const Panel& panel, const Palette& palette, const Rows&) {
  return accuracy_over_expense_figures(expense, {&panel}, {&panel}, palette);
}

/// A figure for each data set: curves of several would lie over each other, and mean nothing there.
template <std::optional<Figure> (*one)(const Panel&, const Palette&)>
Figures draw_by_data(const Panel& panel, const Palette& palette, const Rows&) {
  Figures figures;
  for (const Panel& part : by_data(panel)) add(figures, one(part, palette));
  return figures;
}

using Drawer = Figures (*)(const Panel&, const Palette&, const Rows&);

const std::vector<std::pair<std::string, Drawer>>& drawers() {
  static const std::vector<std::pair<std::string, Drawer>> table{
      {"time", draw_time},
      {"memory", draw_memory},
      {"slopes", draw_slopes},
      {"memory_slopes", draw_memory_slopes},
      {"speedup", draw_speedup},
      {"roofline", draw_roofline},
      {"step_time", draw_step_time},
      {"state", draw_state},
      {"prefill_time", draw_prefill_time},
      {"generation_time", draw_generation_time},
      {"generation_speedup", draw_generation_speedup},
      {"crossover", draw_crossover},
      {"accuracy", draw_accuracy},
      {"accuracy_over_state", draw_accuracy_over_state},
      {"accuracy_over_time", draw_accuracy_over<Expense::time>},
      {"accuracy_over_memory", draw_accuracy_over<Expense::memory>},
      {"accuracy_over_learning_rate", draw_by_data<accuracy_over_rate_figure>},
      {"learning_curves", draw_by_data<learning_curves_figure>},
      {"loss_curves", draw_by_data<loss_curves_figure>},
      {"accuracy_by_look_back", draw_by_data<look_back_figure>},
      {"confusion", draw_by_data<confusion_figure>},
      // What is drawn follows from the trainings: these are the names for language models.
      {"bits_per_byte", draw_accuracy},
      {"bits_per_byte_over_length", draw_by_data<bits_over_length_figure>},
      {"bits_per_byte_over_steps", draw_by_data<bits_over_steps_figure>},
      {"bits_per_byte_over_state", draw_accuracy_over_state},
      {"bits_per_byte_over_time", draw_accuracy_over<Expense::time>},
      {"bits_per_byte_over_memory", draw_accuracy_over<Expense::memory>},
      {"bits_per_byte_over_learning_rate", draw_by_data<accuracy_over_rate_figure>},
      {"latent_probabilities", draw_by_data<latent_probabilities_figure>}};
  return table;
}

}  // namespace

std::vector<std::string> figure_names() {
  std::vector<std::string> names;
  for (const auto& [name, drawer] : drawers()) names.push_back(name);
  return names;
}

std::vector<Figure> draw(const std::string& name, const Panel& panel, const Palette& palette,
                         const std::vector<PublishedRow>& published) {
  std::string known;
  for (const auto& [word, drawer] : drawers()) {
    if (word == name) return drawer(panel, palette, published);
    known += (known.empty() ? "" : ", ") + word;
  }
  throw UsageFailure("no figure is called " + name + "; there are " + known);
}

bool is_drawn_across(const std::string& name) {
  return name == "crossover" || name.ends_with("_over_state") || name.ends_with("_over_time") ||
         name.ends_with("_over_memory");
}

std::vector<Figure> draw_across(const std::string& name, const std::vector<const Panel*>& panels,
                                const std::vector<const Panel*>& all, const Palette& palette,
                                const std::vector<PublishedRow>& published) {
  if (panels.empty()) return {};
  if (name.ends_with("_over_time")) {
    return accuracy_over_expense_figures(Expense::time, panels, all, palette);
  }
  if (name.ends_with("_over_memory")) {
    return accuracy_over_expense_figures(Expense::memory, panels, all, palette);
  }
  if (name.ends_with("_over_state")) return accuracy_over_state_figures(panels, palette, published);
  Figures figures;
  if (name == "crossover") add(figures, crossover_figure(panels, palette));
  return figures;
}

}  // namespace attnbench::reports
