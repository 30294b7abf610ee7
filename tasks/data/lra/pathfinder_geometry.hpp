// What a Pathfinder image is put together from: the arguments of each size, dashes rendered in
// every direction, and where a path may begin and how it may continue. Prepared once for all
// images.
//
// Coordinates are whole pixels, rows and columns from the upper left; angles are radians from the
// column axis towards higher rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tasks/data/lra/strokes.hpp"

namespace attnbench::tasks::data::lra::pathfinder {

inline Offset operator+(Offset a, Offset b) { return {a.row + b.row, a.column + b.column}; }

/// The arguments of one image size; lengths in pixels, contrasts in hundredths.
struct Recipe {
  int side;
  int border;  ///< blocked at each edge
  int dash;    ///< length of a dash ("paddle")
  double thickness;
  std::vector<int> margins;  ///< kept free around dashes; drawn for each image
  int seed_distance;         ///< between the beginnings of the two paths
  double marker_radius;
  double continuity;      ///< turns of up to 90 degrees / continuity
  int distractor_dashes;  ///< asked for in all: how many there are follows from their length
  int distractor_contrast;
  int path_contrast;
};

/// Throws UsageError unless side is 32, 64, 128 or 256.
const Recipe& recipe_of(int side);

/// Dashes of a path: 6, 9 or 14. Throws UsageError unless difficulty is easy, intermediate or hard.
int dashes_of(const std::string& difficulty);

/// A dash as it is pasted with its tail at a pixel: canvases of side 2 K + 1, K = reach.
struct Dash {
  Canvas line{0, 0};
  Canvas occupied{0, 0};  ///< the line with its margin
};

/// The part of a recipe that depends on the margin.
struct Geometry {
  /// `compat`: as in PathfinderRules.
  Geometry(const Recipe& recipe, int margin, bool compat);

  static constexpr int weight_one = 1 << 16;  ///< the weight of going straight on

  struct Angle {
    Offset next_pivot;                 ///< from a pivot, along a path that goes this way
    std::size_t dash;                  ///< drawn from a head back to where it came from
    std::vector<std::uint32_t> turns;  ///< weight of each candidate for the next dash
  };
  struct Beginning {
    Offset head, pivot;          ///< from the tail
    std::size_t dash;            ///< drawn from the tail
    std::vector<Offset> kernel;  ///< what must be free around a tail
    Offset low, high;            ///< bounds of the kernel
    bool impossible = false;     ///< the quirk: see PathfinderRules::compat
  };

  int margin;
  int reach;  ///< K of the dashes
  std::vector<Dash> dashes;
  std::vector<Offset> dash_ends;      ///< of the line on the fine grid: what a dash is told by
  std::vector<Offset> candidates;     ///< for the next head, from the pivot
  std::vector<Angle> angles;          ///< of the candidates, then of the 360 degrees from -180 on
  std::vector<Beginning> beginnings;  ///< of the 360 degrees
  std::vector<Offset> nearby;         ///< disc of the margin

 private:
  std::size_t dash_towards(const Recipe& recipe, double angle);
  void add_candidates(int radius);
  Angle angle_of(const Recipe& recipe, double direction);
  Beginning beginning_at(const Recipe& recipe, double direction, bool compat);

  std::vector<double> directions_;  ///< of `angles`
};

/// The marker: a white disc, its centre in the middle of the canvas.
Canvas marker_of(double radius);

}  // namespace attnbench::tasks::data::lra::pathfinder
