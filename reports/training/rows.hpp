// Rows of the figures of trainings: one for each training, and what its accuracy is compared with:
// guessing, chance, the reach of a window, and the front.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "reports/tables/selection.hpp"

namespace attnbench::reports {

using Json = nlohmann::json;

/// A metric of the record; 0 where it is none.
double metric(const Json& cell, const char* name);

/// Columns that tooltips of trainings begin with; `what` names the number.
std::vector<std::pair<std::string, std::string>> tooltip_columns(const char* what);

/// Whether one of the rows is of that kind.
bool any_of_kind(const Json& rows, const std::string& kind);

/// "0.987".
std::string share_words(double share);

/// A row of one training: its provenance, series, seed and learning rate.
Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x, double y);
/// A row of what was predicted and not trained; rows of one `id` are joined. `said` is the
/// tooltip's text.
Json predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                   const std::string& said);
/// A row that lines join: those of one `line`, which is the series' unless said.
Json mean_row(const std::string& series, const Json& x, double y, const std::string& line = "");
/// A row of row_of, and the line's through it.
void add_joined(Json& rows, Json dot, const std::string& line);

/// Lines over the whole width for guessing and chance, where all trainings of the panel share them.
void add_levels(Json& layers, const result::Panel& panel);

/// The accuracy of chance at each place on the axis, where the places differ in it.
void add_chances(Json& rows, const result::Panel& panel);

/// The accuracy of one look-up into the window, beside the trained window.
void add_reach(Json& rows, const result::Selection& selection, const Json& x);

/// That accuracy for windows of all sizes, over the bytes of their state in units of `unit`, from
/// the least to the greatest of `range` [bytes], and a little beyond.
void add_reach_line(Json& rows, const result::Selection& selection, double unit,
                    const std::pair<double, double>& range);

/// The Pareto front of (cost, accuracy); none of a single point.
void add_front(Json& rows, std::vector<std::pair<double, double>> points);

/// How to read those marks, for a caption; empty without any.
std::string reach_words(const std::vector<result::Selection>& selections);

}  // namespace attnbench::reports
