// The shapes that Pathfinder images are put together from, rendered once: lines and discs drawn on
// a grid `anti_alias` times as fine and reduced with a Lanczos filter to 8 bits.
#pragma once

#include <cstdint>
#include <vector>

namespace attnbench::tasks::data::lra {

/// Grey levels in rows, 0 to 255.
struct Canvas {
  Canvas(int rows_, int columns_)
      : rows(rows_),
        columns(columns_),
        levels(static_cast<std::size_t>(rows_) * static_cast<std::size_t>(columns_)) {}

  std::uint8_t& at(int row, int column) {
    return levels[static_cast<std::size_t>(row * columns + column)];
  }
  std::uint8_t at(int row, int column) const {
    return levels[static_cast<std::size_t>(row * columns + column)];
  }
  bool holds(int row, int column) const {
    return row >= 0 && row < rows && column >= 0 && column < columns;
  }

  int rows, columns;
  std::vector<std::uint8_t> levels;
};

struct Offset {
  int row = 0;
  int column = 0;
  bool operator==(const Offset&) const = default;
};

/// The offsets of a disc: rows and columns whose squares sum up to at most radius^2.
std::vector<Offset> disc(double radius);

/// A square canvas of side `size` from one of another side: Lanczos-3, its support scaled by the
/// reduction, separable, each pass rounded to 8 bits and clipped (as Pillow does it).
Canvas reduced(const Canvas& canvas, int size);

/// Each level the greatest within `shape` around it; nothing beyond the edges counts.
Canvas dilated(const Canvas& canvas, const std::vector<Offset>& shape);

/// Draws level 255 from `from` to `to`, both included: Bresenham for `width` 1, else all pixels
/// whose centres lie within width / 2 of the line and between its ends.
void draw_line(Canvas& canvas, Offset from, Offset to, int width);

}  // namespace attnbench::tasks::data::lra
