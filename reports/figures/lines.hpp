// Line figures: one quantity of a panel's cells against its axis.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "reports/figures/figure.hpp"
#include "reports/figures/points.hpp"

namespace attnbench::reports {

struct LineRequest {
  std::string what;   ///< part of the file's name
  std::string title;  ///< of the figure
  std::string axis;   ///< the quantity, without its unit
  std::string caption;
  Quantity quantity;
  Scale (*scale)(const std::vector<double>& values) = time_scale;
  std::string (*words)(double value) = nullptr;  ///< a value as the tooltip says it
  std::vector<Published> published;
  Quantity disturbed;  ///< of cells that were disturbed; may be empty
};

/// Median and interval as points, lines, bars and bands; published numbers hollow and dashed.
/// Values of 0, which a logarithmic axis does not have, are hollow triangles at its foot. What was
/// disturbed is a crossed ring by itself, which no line joins, with an entry in the legend and the
/// reason in its tooltip. Nothing without values.
std::optional<Figure> line_figure(const result::Panel& panel, const std::vector<std::string>& order,
                                  const LineRequest& request);

}  // namespace attnbench::reports
