// What all specifications share: frame, fonts, axes, colours, the legend that filters.
#pragma once

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
/// The opacity by the legend's selection: `shown` where the legend chose the series (or chose
/// nothing), else faded.
Json legend_opacity(double shown);

/// Encodings of colour and of shape by series, with the same domain, so that they share one legend.
/// Every series is one of the palette's; those from number `grey_from` on have no colour of their
/// own.
Json colour_encoding(const std::vector<std::string>& series, const Palette& palette,
                     std::size_t grey_from = std::string::npos);
/// `encoding` without an entry in the legend.
Json without_legend(Json encoding);
Json shape_encoding(const std::vector<std::string>& series, const Palette& palette);
/// Of lines, beside their colour; null where all are solid.
Json dash_encoding(const std::vector<std::string>& series, const Palette& palette);

/// Encoding of field "x": the panel's axis, with its unit, ticks at the measured values, and
/// between them where a logarithmic axis would have none. Its domain holds `further` values, too.
Json x_encoding(const Panel& panel, const std::vector<double>& further = {});
/// Encoding of field "y": logarithmic where the panel's axis is, ticks by the (then positive)
/// values.
Json y_encoding(const Panel& panel, const std::string& title, const std::vector<double>& values);
/// Whether both axes of the panel's figures are logarithmic: as it says, else where its axis'
/// values grow by factors.
bool is_logarithmic(const Panel& panel);

/// A panel's numeric axis values, ascending.
std::vector<double> numeric_axis(const Panel& panel);

/// Points of one cell: its own place, or every value of the axis where it does not have that
/// option.
std::vector<Json> places(const Panel& panel, const Placed& placed);

/// The file's name, "kernel_time_forward", from a panel and what is drawn of it; letters, digits
/// and "_" only.
std::string file_name(const Panel& panel, const std::string& what);

/// `encoding` of another field.
Json with_field(Json encoding, const char* field);

/// How layers stand in a figure: in a group beside the marks of failures, which have a scale of
/// their own, in a group alone, or by themselves.
enum class Grouping { with_failures, alone, flat };

/// A figure before its frame.
struct Framing {
  std::string what;  ///< part of the file's name
  std::string title;
  std::string caption;
  std::string note = {};  ///< added to the subtitle
  Json x = {};            ///< the encoding of field x; null = x_encoding of the panel
  bool coloured = true;   ///< by series
  Grouping grouping = Grouping::with_failures;
  bool joins = true;      ///< its lines lie over each other: of many series, as small multiples
  bool labelled = false;  ///< its lines have labels at their ends, and no legend
  std::size_t grey_from = std::string::npos;  ///< series from this one on are grey
  Json rows;                                  ///< of the data
  Json layers;
};

/// The complete specification around its layers, and the figure around that.
Figure framed(Framing framing, const Panel& panel, const Palette& palette);

/// Maps beside each other: `unit` for each of `names`, which rows carry as `field`.
Figure framed_maps(Framing framing, const Panel& panel, const Palette& palette, const char* field,
                   Json names, Json unit);

/// How published numbers look beside others of their figure.
struct PublishedLook {
  Json width = 1.5;  ///< of the line that joins them
  double opacity = 0.8;
  bool joined = true;
  Json shape = {};          ///< its encoding, where series have one
  bool has_source = false;  ///< rows say where they are from
};

/// Layers of published numbers over field y: hollow and dashed, never to be taken for a measurement
/// of ours. None without rows.
void add_published(Json& layers, const Json& rows, const Json& y, const PublishedLook& look = {});

/// What every specification begins with: its title, the rows as its data, Vega-Lite's config.
Json bare_spec(const Figure& figure, Json rows);
/// The pixels of a figure's height, but for maps and facets.
inline constexpr double figure_height = 340;
/// Makes a picture as wide as its place.
void fill_width(Json& spec, Json height = figure_height);

/// `text` as lines of at most `width` columns, broken after commas, semicolons and full stops.
Json wrapped_lines(const std::string& text, std::size_t width = 90);

}  // namespace attnbench::reports
