// Where words fit between the marks of a figure, by an estimate of its size in pixels.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace attnbench::reports {

/// A point in pixels, y downwards.
struct Spot {
  double x = 0;
  double y = 0;
};

struct Box {
  double left = 0;
  double top = 0;
  double right = 0;
  double bottom = 0;
};

bool overlap(const Box& a, const Box& b);

/// Marks that words should keep off.
struct Obstacles {
  std::vector<Box> marks;
  std::vector<std::vector<Spot>> lines;  ///< joined by straight strokes
};

/// Words beside a spot.
struct LabelPlace {
  std::size_t anchor = 0;  ///< which of the anchors
  bool to_right = true;    ///< of the anchor: left-aligned; else right-aligned
  double dx = 0;           ///< of the text from the anchor, as Vega-Lite has it
  double dy = 0;           ///< likewise, of the first line's foot
  Box box;
  std::size_t hits = 0;  ///< marks and lines that it lies over
};

/// The place of `words` (lines broken by "\n", `font` pixels high) beside one of `anchors`, the
/// best first, that lies over the fewest obstacles, inside of a frame of `width` and `height`. Of
/// equal ones that of the first anchor, the nearest to it, on the wanted side if that is as near.
LabelPlace place_label(const std::string& words, double font, const std::vector<Spot>& anchors,
                       bool to_right, const Obstacles& obstacles, double width, double height);

}  // namespace attnbench::reports
