// Rows of the figures of trainings: one for each training, and what its accuracy is compared with:
// guessing, chance, the reach of a window, and the front.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "reports/tables/selection.hpp"

namespace attnbench::reports {

using result::CellRecord;

/// A row of a figure, with what figures ask of it.
struct TrainingRow {
  std::string kind;
  std::string series;  ///< empty where it belongs to none
  Json x;
  double y = 0;
  Json json;  ///< all of it
};
using TrainingRows = std::vector<TrainingRow>;
Json to_json(const TrainingRows& rows);

/// A metric of the record; 0 where it is none.
double metric(const CellRecord& cell, const char* name);

/// Columns that tooltips of trainings begin with; `what` names the number.
std::vector<std::pair<std::string, std::string>> tooltip_columns(const char* what);

/// Whether one of the rows is of that kind.
bool any_of_kind(const TrainingRows& rows, const std::string& kind);

/// The share as text: "0.987".
std::string share_words(double share);

/// A row of one training: its provenance, series, seed and learning rate.
TrainingRow row_of(const CellRecord& cell, const std::string& series, const char* kind,
                   const Json& x, double y);
/// A row of what was predicted and not trained; rows of one `id` are joined. `said` is the
/// tooltip's text.
TrainingRow predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                          const std::string& said);
/// A row that lines join: those of one `line`, which is the series' unless said.
TrainingRow mean_row(const std::string& series, const Json& x, double y,
                     const std::string& line = "");
/// A row of row_of, and the line's through it.
void add_joined(TrainingRows& rows, TrainingRow dot, const std::string& line);

/// Lines over the whole width for guessing and chance, or for what counts of the text reach, where
/// all trainings of the panel share them. Of the latter those are left out that lie far above
/// `rows`, but for the last.
void add_levels(Json& layers, const Panel& panel, const TrainingRows& rows);

/// The accuracy of chance at each place on the axis, where the places differ in it.
void add_chances(TrainingRows& rows, const Panel& panel);

/// The accuracy of one look-up into the window, beside the trained window.
void add_reach(TrainingRows& rows, const Selection& selection, const Json& x);

/// The accuracy of one look-up into windows of all sizes, over the bytes of their state in units of
/// `unit`, from the least to the greatest of `range` [bytes], and a little beyond.
void add_reach_line(TrainingRows& rows, const Selection& selection, double unit,
                    const std::pair<double, double>& range);

/// What a mechanism reaches at what cost.
struct Standing {
  std::string series;
  double cost = 0;
  double quality = 0;
};

/// The Pareto front of these; none of a single one.
void add_front(TrainingRows& rows, std::vector<Standing> standings, const Quality& quality);

/// The words for a caption: that `betters` nothing on the front, or why there is none: something
/// missing may be on it.
std::string front_words(const std::string& betters, const std::vector<Missing>& missing);

/// Which weights were scored, for a caption; empty where it is not the same for all.
std::string kept_words(const std::vector<Selection>& selections);

/// How to read those marks, for a caption; empty without any.
std::string reach_words(const std::vector<Selection>& selections);

}  // namespace attnbench::reports
