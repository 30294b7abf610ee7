// What the figures of trainings share: layers by kind of row over an axis of their own, and which
// trainings learned from the same data and belong in one figure.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/figures/figure.hpp"
#include "reports/figures/spec.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/selection.hpp"
#include "reports/training/rows.hpp"

namespace attnbench::reports {

/// A figure before its layers. Rows carry `kind`: "dot" for one training, "mean" for what lines
/// join, "reach", "predicted" (a line of it, one for each `id`), "chance" and "front" for what is
/// drawn apart. The frame's own layers are drawn beneath them.
struct Sketch : Framing {
  Sketch() {
    joins = false;
    layers = Json::array();
  }

  std::string y;  ///< the title of the other axis
  Json y_encoding = {{"scale", {{"domain", {0, 1.02}}, {"nice", false}}},
                     {"axis", {{"format", ".1f"}}}};  ///< its scale and axis: those of a share
  TrainingRows rows;                                  ///< of which the frame's are made
  /// Columns that tooltips show first, as (field, title).
  std::vector<std::pair<std::string, std::string>> columns;
  std::vector<Published> published;  ///< drawn hollow and dashed, in the rows' units
  bool by_family = false;            ///< the legend's order: by families of mechanisms
  bool published_by_name = false;    ///< side by side: x is the name, which has no other place
};

/// What the dots of a figure at chosen learning rates are, for its caption.
std::string chosen_words(const Quality& quality);

/// Scale and axis of a quality: a share from 0 to 1, or bits from the least that there are.
Json quality_encoding(const Quality& quality);

/// The encoding of a logarithmic field x.
Json logarithmic(const char* title, double base, const char* format);

/// A published number's name in a figure of `panel`: that of ours, or one of its own where we have
/// no such model.
std::string published_name(const Panel& panel, const std::string& label);

/// The names along an axis of names: the panel's series, then published ones that we do not have.
std::vector<std::string> published_last(const Panel& panel,
                                        const std::vector<Published>& published);

/// Frames it; nothing without rows.
std::optional<Figure> sketched(const Panel& panel, const Palette& palette, Sketch sketch);

/// The settings that tell the data of a cell of `panel` from that of others: its facets and, where
/// it is a choice of data, its place `x` on the axis. Width and heads are the model's.
std::vector<std::pair<std::string, std::string>> data_of(const Panel& panel,
                                                         const std::optional<Json>& x);

/// The panel's cells by data set, as panels with the data among their facets; the panel itself
/// where there is but one.
std::vector<Panel> by_data(const Panel& panel);

}  // namespace attnbench::reports
