// What the accuracy of a training is held against: guessing, chance, and the reach of a window.
#pragma once

#include <string>
#include <vector>

#include "harness/result/selection.hpp"
#include "reports/training_rows.hpp"

namespace attnbench::reports {

/// Lines over the whole width for guessing and chance, where all trainings of the panel share them.
void add_levels(Json& layers, const result::Panel& panel);

/// What knowing nothing comes to, at each place of its own, where the places differ in it.
void add_chances(Json& rows, const result::Panel& panel);

/// What one look-up into the window reaches, beside the trained window.
void add_reach(Json& rows, const result::Selection& selection, const Json& x);

/// The reach of windows of all sizes, over the bytes of their state in units of `unit`, from the
/// least to the greatest of `range` [bytes], and a little beyond.
void add_reach_line(Json& rows, const result::Selection& selection, double unit,
                    const std::pair<double, double>& range);

/// How that is to be read, for a caption; empty without any.
std::string reach_words(const std::vector<result::Selection>& selections);

}  // namespace attnbench::reports
