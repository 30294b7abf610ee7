#include "tasks/data/lra/pathfinder_geometry.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "core/errors.hpp"

namespace attnbench::tasks::data::lra::pathfinder {
namespace {

constexpr int anti_alias = 2;

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> all{
      {32, 1, 2, 0.5, {1}, 7, 1.5, 1.0, 20, 200, 150},
      {64, 1, 5, 1.0, {1}, 12, 2.5, 1.8, 22, 80, 80},
      {128, 1, 5, 1.5, {2, 3}, 20, 3.0, 1.8, 35, 90, 90},
      {256, 22, 5, 2.0, {3}, 27, 5.0, 1.8, 30, 100, 100},
  };
  return all;
}

/// The whole-number offset `distance` away in direction `angle` (radians from the column axis
/// towards higher rows), rounded up in both coordinates. What is whole but for rounding stays so.
Offset moved(double angle, double distance) {
  const auto up = [](double x) { return static_cast<int>(std::ceil(x - 1e-9)); };
  return {up(distance * std::sin(angle)), up(distance * std::cos(angle))};
}

}  // namespace

int dashes_of(const std::string& difficulty) {
  if (difficulty == "easy") return 6;
  if (difficulty == "intermediate") return 9;
  if (difficulty == "hard") return 14;
  throw UsageError("lra.pathfinder: difficulty is " + difficulty +
                   ", expected easy, intermediate or hard");
}

const Recipe& recipe_of(int side) {
  for (const Recipe& recipe : recipes()) {
    if (recipe.side == side) return recipe;
  }
  throw UsageError("lra.pathfinder: side is " + std::to_string(side) +
                   ", expected 32, 64, 128 or 256");
}

std::size_t Geometry::dash_towards(const Recipe& recipe, double angle) {
  const Offset end = moved(angle, recipe.dash * anti_alias);
  const auto known = std::find(dash_ends.begin(), dash_ends.end(), end);
  if (known != dash_ends.end()) return static_cast<std::size_t>(known - dash_ends.begin());
  const int fine = 2 * reach * anti_alias + 1;
  const Offset centre{reach * anti_alias, reach * anti_alias};
  Canvas canvas(fine, fine);
  draw_line(canvas, centre, centre + end,
            static_cast<int>(std::lround(recipe.thickness * anti_alias)));
  dash_ends.push_back(end);
  dashes.push_back({reduced(canvas, 2 * reach + 1),
                    reduced(dilated(canvas, disc(margin * anti_alias)), 2 * reach + 1)});
  return dashes.size() - 1;
}

Geometry::Geometry(const Recipe& recipe, int margin_, bool compat)
    : margin(margin_),
      reach(recipe.dash + static_cast<int>(std::ceil(recipe.thickness)) + margin_),
      nearby(disc(margin_)) {
  add_candidates(recipe.dash + margin);
  for (int degree = -180; degree < 180; ++degree) {
    directions_.push_back(degree * std::numbers::pi / 180);
  }
  for (const double direction : directions_) angles.push_back(angle_of(recipe, direction));
  for (std::size_t i = candidates.size(); i < directions_.size(); ++i) {
    beginnings.push_back(beginning_at(recipe, directions_[i], compat));
  }
}

/// The pixels of a circle around the pivot, one pixel of arc apart, each once.
void Geometry::add_candidates(int radius) {
  for (int step = 0; step < 2 * std::numbers::pi * radius; ++step) {
    const double around = static_cast<double>(step) / radius;
    const Offset candidate{static_cast<int>(std::floor(radius * std::sin(around))),
                           static_cast<int>(std::floor(radius * std::cos(around)))};
    if (std::find(candidates.begin(), candidates.end(), candidate) != candidates.end()) continue;
    candidates.push_back(candidate);
    directions_.push_back(std::atan2(candidate.row, candidate.column));
  }
}

Geometry::Angle Geometry::angle_of(const Recipe& recipe, double direction) {
  Angle angle;
  angle.next_pivot = moved(direction, recipe.dash + 2 * margin);
  angle.dash = dash_towards(recipe, direction + std::numbers::pi);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const double apart = std::abs(directions_[i] - direction);
    const double turn = std::min(apart, 2 * std::numbers::pi - apart);
    const double cosine =
        std::max(std::cos(std::min(recipe.continuity * turn, std::numbers::pi / 2)), 0.0);
    angle.turns.push_back(static_cast<std::uint32_t>(std::lround(weight_one * cosine * cosine)));
  }
  return angle;
}

Geometry::Beginning Geometry::beginning_at(const Recipe& recipe, double direction, bool compat) {
  const int radius = recipe.dash + margin;
  Beginning beginning;
  beginning.head = moved(direction, recipe.dash);
  beginning.pivot = beginning.head + moved(direction + std::numbers::pi, radius);
  beginning.dash = dash_towards(recipe, direction);
  // The kernel is what a dash occupies wholly on a canvas of side 2 radius + 1 whose centre is the
  // tail, drawn one pixel off that centre in both coordinates.
  const Canvas& occupied = dashes[beginning.dash].occupied;
  for (int row = -radius; row <= radius; ++row) {
    for (int column = -radius; column <= radius; ++column) {
      const int dash_row = row - 1 + reach;
      const int dash_column = column - 1 + reach;
      if (!occupied.holds(dash_row, dash_column)) continue;
      if (occupied.at(dash_row, dash_column) == 255) beginning.kernel.push_back({row, column});
    }
  }
  for (const Offset& cell : beginning.kernel) {
    beginning.low = {std::min(beginning.low.row, cell.row),
                     std::min(beginning.low.column, cell.column)};
    beginning.high = {std::max(beginning.high.row, cell.row),
                      std::max(beginning.high.column, cell.column)};
  }
  // A pixel whose whole kernel lies outside the image is a corner, if there is any.
  const auto none = [&](auto inside) {
    return std::none_of(beginning.kernel.begin(), beginning.kernel.end(), inside);
  };
  beginning.impossible = compat && (none([](Offset o) { return o.row >= 0 && o.column >= 0; }) ||
                                    none([](Offset o) { return o.row >= 0 && o.column <= 0; }) ||
                                    none([](Offset o) { return o.row <= 0 && o.column >= 0; }) ||
                                    none([](Offset o) { return o.row <= 0 && o.column <= 0; }));
  return beginning;
}

Canvas marker_of(double radius) {
  const int half = static_cast<int>(std::ceil(radius)) + 4;  // the filter reaches 3 pixels on
  Canvas fine((2 * half + 1) * anti_alias, (2 * half + 1) * anti_alias);
  for (const Offset& offset : disc(radius * anti_alias)) {
    fine.at(half * anti_alias + offset.row, half * anti_alias + offset.column) = 255;
  }
  return reduced(fine, 2 * half + 1);
}

}  // namespace attnbench::tasks::data::lra::pathfinder
