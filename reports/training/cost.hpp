// Accuracy, or bits per byte, against cost: the bytes of the state, or time and memory as another
// task of the same run measured them.
#pragma once

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// One figure for each data set that the panels' trainings learned from: widths and numbers of
/// heads stand side by side in it. Every seed at the chosen learning rate, the Pareto front, the
/// predicted accuracy of one look-up into windows of all sizes, and published numbers apart.
std::vector<Figure> accuracy_over_state_figures(const std::vector<const Panel*>& panels,
                                                const Palette& palette,
                                                const std::vector<PublishedRow>& published);

/// What a pass costs, and how a figure shows it.
enum class Expense { time, memory };

/// One figure for each of the trainings' panels: every seed at the chosen learning rate, over the
/// time or the peak of memory of the same mechanism with the same options (and the same length and
/// width, where both tasks have them) among `all` panels of the result, and the front. Trainings
/// without a measured cost are left out and counted in the caption; nothing where none has one.
std::vector<Figure> accuracy_over_expense_figures(Expense expense,
                                                  const std::vector<const Panel*>& panels,
                                                  const std::vector<const Panel*>& all,
                                                  const Palette& palette);

}  // namespace attnbench::reports
