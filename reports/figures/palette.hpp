// The looks of series: one table for the whole project, so that a mechanism has the same colour in
// every figure. Members of a family share a hue (exact black, windows amber, latents blue, linear
// red to brown, gated recurrences green, the delta rule violet, slots pink) and differ in lightness
// and in the shape of their points.
//
// The colours were chosen by search for the greatest least distance between any two, for normal
// sight and for protanopia, deuteranopia and tritanopia; tests/reports/figures/palette.cpp holds
// them to it.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <map>
#include <string>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

struct Look {
  std::string colour;     ///< on white
  std::string dark;       ///< the same on a dark background
  std::string shape;      ///< of points, as Vega-Lite calls it
  std::vector<int> dash;  ///< of lines, in pixels; empty for solid ones
};

/// Marks of which only one may stand for a word (what binds, a verdict), beside those of
/// mechanisms.
inline constexpr const char* accent_blue = "#0072b2";
inline constexpr const char* accent_orange = "#d55e00";
inline constexpr const char* accent_green = "#009e73";
inline constexpr const char* accent_grey = "#6b7280";

class Palette {
 public:
  Palette() = default;
  /// Series that are called as their mechanism is.
  Palette(std::initializer_list<std::string> series);
  explicit Palette(const std::vector<std::string>& series);
  /// The series of all panels, each with the mechanism of its first cell.
  explicit Palette(const std::vector<Panel>& panels);

  /// `series` after those that are there; without effect where it is one of them. A label that the
  /// table has (an alias) comes before the mechanism. The second and further series of one
  /// mechanism are its colour lighter and darker, then dashed; what the table lacks takes the next
  /// of the colours that belong to no family.
  void add(const std::string& series, const std::string& mechanism);
  /// `series` as one more result of `like`, which is there: its colour and shape, solid for the
  /// first result, a dash of its own for each of the next four.
  void add_again(const std::string& series, const std::string& like, std::size_t result);

  bool empty() const { return order_.empty(); }
  /// The first series of the result, its baseline. Not of an empty palette.
  const std::string& first() const { return order_.front(); }
  /// Grey of a series that was not added.
  const Look& of(const std::string& series) const;
  /// `series` in the order of the table, in which families stand together, each as it was given;
  /// last what the table lacks.
  std::vector<std::string> by_family(std::vector<std::string> series) const;

 private:
  std::vector<std::string> order_;
  std::map<std::string, Look> looks_;
  std::map<std::string, std::size_t> entries_;  ///< of the table, of the series that it has
  std::map<std::string, int> lines_;            ///< so far, of each entry of the table
};

/// The entries of the table: mechanisms and aliases.
const std::vector<std::pair<std::string, Look>>& table_of_looks();

/// Colours on white → on a dark background, of all that this project draws.
const std::map<std::string, std::string>& dark_colours();

}  // namespace attnbench::reports
