// The figures and tables of the papers that suites follow: suites/form/figures.json, which the
// program holds.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::suite {

/// A figure or table with results. A suite names the one that it follows (`"figure"`).
struct PaperFigure {
  std::string name;     ///< "latte_v2.figure_6"
  std::string paper;    ///< "latte_v2", the part of `name` before the dot
  std::string label;    ///< "Latte v2, Figure 6"
  std::string title;    ///< what it shows
  std::string missing;  ///< what no suite here has of it, or why there is none; may be empty
  std::string differs;  ///< what a suite does otherwise; may be empty
};

/// A picture of the gallery: a figure that the report of a suite's stored result draws.
struct Picture {
  std::string suite;
  std::string profile;  ///< that the stored result has; empty = the whole suite
  std::string figure;   ///< of the report, such as "kernel_time"
  std::string file;     ///< without ending
  std::string alt;      ///< for those who do not see it
  std::string caption;
};

/// The axes of a figure `label`, as the list's member "axes" has them: a `source`, and of `scale`
/// ("linear" or "log", of both axes), `time` and `memory` (units) what is known. Throws
/// UsageFailure naming member and expectation.
reports::PaperAxes axes_from(const nlohmann::json& json, const std::string& label);

/// The axes that the list knows, by the figure's name.
const std::map<std::string, reports::PaperAxes>& paper_axes();

/// The figures and tables in the order of the papers, and within one figures before tables.
const std::vector<PaperFigure>& paper_figures();
/// The figure of that name; null where there is none.
const PaperFigure* find_paper_figure(const std::string& name);
/// Why no suite may name `name`, with the nearest name; empty where one may.
std::string figure_complaint(const std::string& name);

/// The pictures in the order of the gallery.
const std::vector<Picture>& gallery_pictures();
/// The profile of the suite's stored result: that of its pictures, else "quick".
std::string gallery_profile(const std::string& suite);

}  // namespace attnbench::suite
