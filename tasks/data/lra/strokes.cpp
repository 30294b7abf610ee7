#include "tasks/data/lra/strokes.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>

namespace attnbench::tasks::data::lra {
namespace {

/// Not std::hypot, whose last bit, and symbol, changed with glibc 2.35: of whole numbers this is
/// the same everywhere.
double distance(double rows, double columns) { return std::sqrt(rows * rows + columns * columns); }

double sinc(double x) {
  if (x == 0) return 1;
  return std::sin(std::numbers::pi * x) / (std::numbers::pi * x);
}

double lanczos(double x) { return std::abs(x) < 3 ? sinc(x) * sinc(x / 3) : 0; }

/// What one reduced pixel is a weighted mean of: pixels `first` on.
struct Window {
  int first;
  std::vector<double> weights;
};

std::vector<Window> windows(int from, int to) {
  const double scale = static_cast<double>(from) / to;
  const double stretch = std::max(1.0, scale);
  std::vector<Window> all;
  for (int i = 0; i < to; ++i) {
    const double centre = (i + 0.5) * scale;
    const int first = std::max(0, static_cast<int>(centre - 3 * stretch + 0.5));
    const int last = std::min(from, static_cast<int>(centre + 3 * stretch + 0.5));
    Window window{first, {}};
    double sum = 0;
    for (int j = first; j < last; ++j) {
      window.weights.push_back(lanczos((j - centre + 0.5) / stretch));
      sum += window.weights.back();
    }
    for (double& weight : window.weights) weight /= sum;
    all.push_back(std::move(window));
  }
  return all;
}

std::uint8_t level(double value) {
  return static_cast<std::uint8_t>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
}

}  // namespace

std::vector<Offset> disc(double radius) {
  std::vector<Offset> offsets;
  const int reach = static_cast<int>(radius);
  for (int row = -reach; row <= reach; ++row) {
    for (int column = -reach; column <= reach; ++column) {
      if (row * row + column * column <= radius * radius) offsets.push_back({row, column});
    }
  }
  return offsets;
}

Canvas reduced(const Canvas& canvas, int size) {
  const std::vector<Window> across = windows(canvas.columns, size);
  const std::vector<Window> down = windows(canvas.rows, size);
  Canvas narrow(canvas.rows, size);
  for (int row = 0; row < canvas.rows; ++row) {
    for (int column = 0; column < size; ++column) {
      const Window& window = across[static_cast<std::size_t>(column)];
      double sum = 0;
      for (std::size_t i = 0; i < window.weights.size(); ++i) {
        sum += window.weights[i] * canvas.at(row, window.first + static_cast<int>(i));
      }
      narrow.at(row, column) = level(sum);
    }
  }
  Canvas small(size, size);
  for (int row = 0; row < size; ++row) {
    const Window& window = down[static_cast<std::size_t>(row)];
    for (int column = 0; column < size; ++column) {
      double sum = 0;
      for (std::size_t i = 0; i < window.weights.size(); ++i) {
        sum += window.weights[i] * narrow.at(window.first + static_cast<int>(i), column);
      }
      small.at(row, column) = level(sum);
    }
  }
  return small;
}

Canvas dilated(const Canvas& canvas, const std::vector<Offset>& shape) {
  Canvas grown(canvas.rows, canvas.columns);
  for (int row = 0; row < canvas.rows; ++row) {
    for (int column = 0; column < canvas.columns; ++column) {
      if (canvas.at(row, column) == 0) continue;
      for (const Offset& offset : shape) {
        if (!grown.holds(row + offset.row, column + offset.column)) continue;
        std::uint8_t& into = grown.at(row + offset.row, column + offset.column);
        into = std::max(into, canvas.at(row, column));
      }
    }
  }
  return grown;
}

void draw_line(Canvas& canvas, Offset from, Offset to, int width) {
  const auto set = [&](int row, int column) {
    if (canvas.holds(row, column)) canvas.at(row, column) = 255;
  };
  const int rows = to.row - from.row;
  const int columns = to.column - from.column;
  if (width <= 1) {
    const bool steep = std::abs(rows) > std::abs(columns);
    const int steps = std::max(std::abs(rows), std::abs(columns));
    const int slope = std::min(std::abs(rows), std::abs(columns));
    const int row_step = rows < 0 ? -1 : 1;
    const int column_step = columns < 0 ? -1 : 1;
    int fault = 2 * slope - steps;
    for (int row = from.row, column = from.column, i = 0; i <= steps; ++i) {
      set(row, column);
      if (fault >= 0) {
        (steep ? column : row) += steep ? column_step : row_step;
        fault -= 2 * steps;
      }
      fault += 2 * slope;
      (steep ? row : column) += steep ? row_step : column_step;
    }
    return;
  }
  const double length = distance(rows, columns);
  for (int row = 0; row < canvas.rows; ++row) {
    for (int column = 0; column < canvas.columns; ++column) {
      const double down = row - from.row;
      const double right = column - from.column;
      const double along = length > 0 ? (down * rows + right * columns) / length : 0;
      const double apart =
          length > 0 ? std::abs(down * columns - right * rows) / length : distance(down, right);
      if (along >= -1e-9 && along <= length + 1e-9 && apart <= width / 2.0 + 1e-9) set(row, column);
    }
  }
}

}  // namespace attnbench::tasks::data::lra
