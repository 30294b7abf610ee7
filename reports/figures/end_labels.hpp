// Labels at the ends of lines, in place of a legend: moved apart where they would lie over each
// other.
#pragma once

#include <string>
#include <vector>

#include "core/json_object.hpp"

namespace attnbench::reports {

/// The number of lines up to which each has a label at its end; more are small multiples.
inline constexpr std::size_t max_labelled = 14;

/// `places` moved as little as possible (by squares) so that neighbours are `gap` apart at least
/// and all lie from `least` to `most`, if they have room there; in the order that they were given.
std::vector<double> spread_apart(const std::vector<double>& places, double gap, double least,
                                 double most);

/// The last point of a line.
struct LineEnd {
  std::string series;
  Json x;
  double y = 0;
};

/// A layer of labels right of the ends, coloured as their lines, in a figure of `height` pixels
/// whose lines are encoded by `y`, a linear or logarithmic scale with a domain. A click on one
/// fades the other series; with Shift, several are kept.
Json end_label_layer(const std::vector<LineEnd>& ends, const Json& y, double height);

/// `x` with room for the labels on the right.
Json with_label_room(Json x, const std::vector<LineEnd>& ends);

}  // namespace attnbench::reports
