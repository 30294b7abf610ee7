// What the figures of trainings share: rows of cells, and layers over an axis of their own.
#pragma once

#include <optional>
#include <set>
#include <utility>

#include "harness/result/selection.hpp"
#include "reports/figure.hpp"

namespace attnbench::reports {

/// A figure before it is framed. Rows carry `kind`: "dot" for one training, "mean" for what lines
/// join, "reach", "chance" and "front" for what is drawn apart.
struct Sketch {
  std::string what;
  std::string title;
  std::string caption;
  Json x;         ///< the encoding of field x
  std::string y;  ///< the title of the other axis
  Json y_encoding = {{"scale", {{"domain", {0, 1.02}}, {"nice", false}}},
                     {"axis", {{"format", ".1f"}}}};  ///< its scale and axis: those of a share
  Json rows = Json::array();
  Json layers = Json::array();  ///< drawn beneath the rows
  /// Columns that tooltips show first, as (field, title).
  std::vector<std::pair<std::string, std::string>> told;
};

/// Columns that tooltips of trainings begin with; `what` names the number.
std::vector<std::pair<std::string, std::string>> told_of(const char* what);

/// Whether one of the rows is of that kind.
bool any_of_kind(const Json& rows, const std::string& kind);

/// "0.987".
std::string share_words(double share);

/// A row of one training: its provenance, series, seed and learning rate.
Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x, double y);
/// A row that lines join.
Json mean_row(const std::string& series, const Json& x, double y);

/// A dashed line over the whole width at `y`, with what it is.
Json level_line(double y, const std::string& what);

/// A metric of the record; 0 where it is none.
double metric(const Json& cell, const char* name);

/// Frames it; nothing without rows.
std::optional<Figure> sketched(const result::Panel& panel, const std::vector<std::string>& order,
                               Sketch sketch);

}  // namespace attnbench::reports
