// The kinds of figures: each is drawn by the file of its name, from a panel's cells or from
// verdicts.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/json_object.hpp"
#include "reports/figures/figure.hpp"
#include "reports/figures/points.hpp"
#include "reports/figures/verdicts.hpp"
#include "reports/tables/layout.hpp"
#include "reports/tables/panel_growth.hpp"

namespace attnbench::reports {

// ---- Lines: one quantity of a panel's cells against its axis.

/// Where a line comes to lie below that of exact attention.
struct LineCrossing {
  std::string series;
  double at = 0;              ///< on the axis
  std::optional<double> low;  ///< of its interval; absent where nothing is known below `at`
  double high = 0;
  std::string words;    ///< for the tooltip
  std::string command;  ///< that measures around it; may be empty
};

struct LineRequest {
  std::string what;   ///< part of the file's name
  std::string title;  ///< of the figure
  std::string axis;   ///< the quantity, without its unit
  std::string caption;
  Quantity quantity;
  Scale (*scale)(const std::vector<double>& values) = time_scale;
  std::string unit = {};  ///< one of its units; empty for the one that suits the values
  std::string (*words)(double value) = nullptr;  ///< a value as the tooltip says it
  std::vector<Published> published;
  Quantity disturbed;  ///< of cells that were disturbed; may be empty
  std::vector<LineCrossing> crossings;
};

/// A figure of median and interval as points, lines, bars and bands; published numbers hollow and
/// dashed, crossings as rings with a bar over their interval. Values of 0, which a logarithmic axis
/// does not have, are hollow triangles at its foot. What was disturbed is a crossed ring by itself,
/// which no line joins, with an entry in the legend and the reason in its tooltip. Nothing without
/// values.
std::optional<Figure> line_figure(const Panel& panel, const Palette& palette,
                                  const LineRequest& request);

// ---- Ratios: speedup over the suite's first mechanism, and the share of the floor that each cell
// reaches.

/// The time of the palette's first series over that of each series; `timing` names a WHAT of the
/// records, or is empty for what each cell times first. The bounds are those of a quotient of two
/// intervals. Published ratios are drawn apart. Nothing where the first series has no time beside
/// another's.
std::optional<Figure> speedup_figure(const Panel& panel, const Palette& palette,
                                     const std::vector<PublishedRow>& published,
                                     const std::string& timing);

/// The share floor / time of each cell against the axis, coloured by the term that binds. Nothing
/// where no cell has a roofline.
std::optional<Figure> roofline_figure(const Panel& panel, const Palette& palette);

// ---- Local growth: by which power time or workspace grows between neighbours on the axis.

/// The slope of its logarithm over that of the axis between neighbouring cells, beside the
/// exponents that the mechanisms claim of such cells (dashed), with what became of each claim in
/// the caption. Cells whose time was disturbed are left out. Slopes of cells under 5 ms are faint:
/// there constant costs still count. Nothing without two neighbours.
std::optional<Figure> slopes_figure(const Panel& panel, const Palette& palette, GrownQuantity what);

// ---- The crossover map: from which length on a mechanism is faster than exact attention, against
// its size, for every scope side by side.

/// One figure over all panels of a task: a column per scope, a row per further setting that varies.
/// Points with bars: length and interval. Hollow triangles: the crossover lies beyond what was
/// searched, in the direction they point; hollow diamonds: there is none or more than one, see the
/// tooltip. The caption names series without a crossover to draw. Nothing without crossovers.
std::optional<Figure> crossover_figure(const std::vector<const Panel*>& panels,
                                       const Palette& palette);

// ---- The verdicts of `attnbench ab`: a ratio with its interval for each pair.

/// A line for each pair that has a ratio, in the run's order: the ratio new / base as a point
/// coloured by its verdict, its interval as a bar, on a logarithmic axis with a rule at 1, the
/// margin as a band, and the base against itself as a thin grey bar. The caption names pairs
/// without a ratio. Nothing where no pair has one.
std::optional<Figure> forest_figure(const Verdicts& verdicts);

// ---- Small multiples: a figure of many lines as a small one for each series, over the same axes.

/// The number of series from which on lines that lie over each other cannot be distinguished.
inline constexpr std::size_t crowded = 6;

/// `spec`, a complete layered specification, as a facet for each series of `panel`, in their order:
/// its own marks in colour, thin lines of exact attention in its colour and of all others in grey,
/// the same scales everywhere. Rows of layers with data of their own that belong to a series (its
/// crossing) go into its facet, the others into all. The legend of series and its selection are
/// gone: the headers name them.
Json small_multiples(Json spec, const Panel& panel, const Palette& palette);

/// The panel's series of exact attention; none where there are no others to hold to them.
std::set<std::string> exact_series(const Panel& panel);

}  // namespace attnbench::reports
