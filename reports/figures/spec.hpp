// What all specifications share: frame, fonts, axes, colours, the legend that filters.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/figures/figure.hpp"
#include "reports/figures/points.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {

/// Marks of a series that the legend did not choose fade to this.
constexpr double faded = 0.07;

/// The selection that the legend makes; belongs into one layer, the one with the points.
Json legend_selection();
/// `shown` where the legend chose the series (or chose nothing), else faded.
Json legend_opacity(double shown);

/// Encoding of colour by series, and of shape beside it so that print and colour-blind readers can
/// tell them apart; both with the same domain, so that they share one legend.
Json colour_encoding(const std::vector<std::string>& series, const std::vector<std::string>& order);
Json shape_encoding(const std::vector<std::string>& series, const std::vector<std::string>& order);

/// Whether sizes grow by factors (256, 512, 1024, …), so that logarithms suit them.
bool grows_by_factors(const std::vector<double>& values);

/// Powers of ten around `values`, which are positive, with 2 and 5 between them where they are few.
/// A logarithmic axis' own ticks are nine a decade, which grids turn into a grey wall.
Json decade_ticks(const std::vector<double>& values);

/// Encoding of field "x": the panel's axis, with its unit, ticks at the measured values. Its domain
/// holds `further` values, too.
Json x_encoding(const result::Panel& panel, const std::vector<double>& further = {});
/// Encoding of field "y": logarithmic where the panel's axis is, ticks by the (then positive)
/// values.
Json y_encoding(const result::Panel& panel, const std::string& title,
                const std::vector<double>& values);
/// Whether both axes of the panel's figures are logarithmic.
bool is_logarithmic(const result::Panel& panel);

/// A panel's numeric axis values, ascending.
std::vector<double> numeric_axis(const result::Panel& panel);

/// Points of one cell: its own place, or every value of the axis where it does not have that
/// option.
std::vector<Json> places(const result::Panel& panel, const result::Placed& placed);

/// The words for an axis: "length T (tokens)".
std::string axis_title(const std::string& axis);

/// "kernel_time_forward" from a panel and what is drawn of it; letters, digits and "_" only.
std::string file_name(const result::Panel& panel, const std::string& what);

/// The complete specification around `layers`, and the figure around that.
Figure framed(const result::Panel& panel, const std::string& what, const std::string& title,
              const std::string& caption, const std::vector<std::string>& order, Json layers);

/// Vega-Lite's `config` of all figures.
nlohmann::json frame_config();

/// `text` as lines of at most `width` columns, broken after commas, semicolons and full stops.
nlohmann::json wrapped_lines(const std::string& text, std::size_t width = 90);

}  // namespace attnbench::reports
