// What the accuracy of a training is held against: guessing, chance, the reach of a
// window, and the front of what nothing betters.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/tables/selection.hpp"
#include "reports/training/rows.hpp"

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

/// The front of (cost, accuracy): what nothing as cheap betters. None of a single point.
void add_front(Json& rows, std::vector<std::pair<double, double>> points);

/// How the reach is to be read, for a caption; empty without any.
std::string reach_words(const std::vector<result::Selection>& selections);

}  // namespace attnbench::reports
