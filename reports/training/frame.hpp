// What the figures of trainings share: layers by kind of row, over an axis of their own.
#pragma once

#include <optional>
#include <utility>

#include "reports/tables/selection.hpp"
#include "reports/figures/figure.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {

/// A figure before it is framed. Rows carry `kind`: "dot" for one training, "mean" for what lines
/// join, "reach", "predicted" (a line of it, one for each `id`), "chance" and "front" for what is
/// drawn apart.
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
  std::vector<Published> published;  ///< drawn hollow and dashed, in the rows' units
};

/// How the dots of a figure at chosen learning rates are to be read.
extern const char* const chosen_words;

/// The encoding of a logarithmic field x.
Json logarithmic(const char* title, double base, const char* format);

/// Frames it; nothing without rows.
std::optional<Figure> sketched(const result::Panel& panel, const std::vector<std::string>& order,
                               Sketch sketch);

}  // namespace attnbench::reports
