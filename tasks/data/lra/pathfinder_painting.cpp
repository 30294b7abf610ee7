#include "tasks/data/lra/pathfinder_painting.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace attnbench::tasks::data::lra::pathfinder {
namespace {

constexpr int seed_attempts = 3;
constexpr int dash_attempts = 3;
constexpr int free_level = 76;      // 0.3 of 255: what is at most this is free
constexpr int overlap_level = 459;  // 1.8 of 255: two masks may not sum up to this

}  // namespace

Painting::Painting(const Recipe& recipe, const Geometry& geometry, Random& draws)
    : recipe_(recipe),
      geometry_(geometry),
      draws_(draws),
      pad_(geometry.reach + geometry.margin),
      stride_(recipe.side + 2 * pad_),
      mask_(static_cast<std::size_t>(stride_) * static_cast<std::size_t>(stride_)) {
  for (int row = 0; row < recipe.side; ++row) {
    for (int column = 0; column < recipe.side; ++column) {
      const int edge = std::min(std::min(row, column), recipe.side - 1 - std::max(row, column));
      if (edge < recipe.border) level({row, column}) = 255;
    }
  }
}

bool Painting::paths(int dashes, std::array<Path, 2>& paths) {
  const std::size_t placed = placed_.size();
  if (!begin_first(paths[0]) || !begin_second(paths[0], paths[1])) return false;
  const std::vector<std::uint8_t> before = mask_;
  for (Path& path : paths) place_first(path, recipe_.path_contrast);
  if (grow(paths.data(), 2, dashes, recipe_.path_contrast)) return true;
  mask_ = before;
  placed_.resize(placed);
  return false;
}

bool Painting::distractor(int dashes) {
  const auto free =
      std::count_if(mask_.begin(), mask_.end(), [](std::uint8_t l) { return l <= free_level; });
  const int padding = stride_ * stride_ - recipe_.side * recipe_.side;  // always free
  if ((free - padding) * 100 < recipe_.side * recipe_.side) return false;
  Path path;
  if (!begin_anywhere(path)) return false;
  const std::vector<std::uint8_t> before = mask_;
  const std::size_t placed = placed_.size();
  place_first(path, recipe_.distractor_contrast);
  if (grow(&path, 1, dashes, recipe_.distractor_contrast)) return true;
  mask_ = before;
  placed_.resize(placed);
  return false;
}

std::vector<std::uint8_t> Painting::render(const Canvas& marker, Offset first,
                                           Offset second) const {
  const auto side = static_cast<std::size_t>(recipe_.side);
  std::vector<int> light(side * side);
  for (const PlacedDash& placed : placed_) {
    paste(light, geometry_.dashes[placed.dash].line, placed.at, placed.contrast);
  }
  paste(light, marker, first, 100);
  paste(light, marker, second, 100);
  const auto [low, high] = std::minmax_element(light.begin(), light.end());
  const int range = *high - *low;
  std::vector<std::uint8_t> pixels(light.size());
  for (std::size_t i = 0; i < light.size(); ++i) {
    pixels[i] = static_cast<std::uint8_t>((2 * 255 * (light[i] - *low) + range) / (2 * range));
  }
  return pixels;
}

/// A tail and what follows from it, if head and pivot are inside.
bool Painting::set_beginning(Path& path, Offset tail, std::size_t degree) const {
  const Geometry::Beginning& beginning = geometry_.beginnings[degree];
  path.origin = tail;
  path.tip = tail + beginning.head;
  path.pivot = tail + beginning.pivot;
  path.angle = geometry_.candidates.size() + degree;
  return inside(path.tip) && inside(path.pivot);
}

/// The first path begins in the middle: a band of twice the seed distance is blocked for it. What
/// is free there is a rectangle, since nothing else is on the mask yet.
bool Painting::begin_first(Path& path) {
  const int band = std::max(2 * recipe_.seed_distance, recipe_.border);
  const int last = recipe_.side - 1 - band;
  for (int attempt = 0; attempt < seed_attempts; ++attempt) {
    const std::uint32_t degree = draws_.below(360);
    const Geometry::Beginning& beginning = geometry_.beginnings[degree];
    const Offset low{band - beginning.low.row, band - beginning.low.column};
    const Offset high{last - beginning.high.row, last - beginning.high.column};
    if (beginning.impossible || low.row > high.row || low.column > high.column) return false;
    const Offset tail{between(low.row, high.row), between(low.column, high.column)};
    if (set_beginning(path, tail, degree)) return true;
  }
  return false;
}

/// The second begins the seed distance away; only its bounds are looked at.
bool Painting::begin_second(const Path& first, Path& path) {
  for (int attempt = 0; attempt < seed_attempts; ++attempt) {
    const std::uint32_t degree = draws_.below(360);
    const double around = draws_.below(360) * std::numbers::pi / 180;
    const Offset apart{static_cast<int>(std::lround(recipe_.seed_distance * std::sin(around))),
                       static_cast<int>(std::lround(recipe_.seed_distance * std::cos(around)))};
    const Offset tail = first.origin + apart;
    if (inside(tail) && set_beginning(path, tail, degree)) return true;
  }
  return false;
}

/// A distractor begins wherever its first dash has room.
bool Painting::begin_anywhere(Path& path) {
  for (int attempt = 0; attempt < seed_attempts; ++attempt) {
    const std::uint32_t degree = draws_.below(360);
    const Geometry::Beginning& beginning = geometry_.beginnings[degree];
    Offset tail;
    if (beginning.impossible || !draw_free(beginning.kernel, tail)) return false;
    if (set_beginning(path, tail, degree)) return true;
  }
  return false;
}

/// Whether nothing is in the way of a kernel at `tail`, the outermost pixels being blocked. Not
/// so where the kernel is outside altogether.
bool Painting::is_free(const std::vector<Offset>& kernel, Offset tail) {
  bool any = false;
  for (const Offset& cell : kernel) {
    const Offset at = tail + cell;
    if (!inside(at)) continue;
    any = true;
    if (at.row == 0 || at.column == 0 || at.row == recipe_.side - 1 ||
        at.column == recipe_.side - 1 || level(at) > free_level) {
      return false;
    }
  }
  return any;
}

/// One of the free tails, each equally likely: by trial, and by counting them where few are free.
bool Painting::draw_free(const std::vector<Offset>& kernel, Offset& tail) {
  const int last = recipe_.side - 1;
  for (int trial = 0; trial < 256; ++trial) {
    tail = {between(0, last), between(0, last)};
    if (is_free(kernel, tail)) return true;
  }
  std::vector<Offset> free;
  for (int row = 0; row <= last; ++row) {
    for (int column = 0; column <= last; ++column) {
      if (is_free(kernel, {row, column})) free.push_back({row, column});
    }
  }
  if (free.empty()) return false;
  tail = free[draws_.below(static_cast<std::uint32_t>(free.size()))];
  return true;
}

void Painting::place_first(Path& path, int contrast) {
  const std::size_t degree = path.angle - geometry_.candidates.size();
  path.current = {geometry_.beginnings[degree].dash, path.origin, contrast};
  placed_.push_back(path.current);
}

bool Painting::grow(Path* paths, int count, int dashes, int contrast) {
  for (int dash = 1; dash < dashes; ++dash) {
    for (int i = 0; i < count; ++i) {
      if (!extend(paths[i], contrast)) return false;
    }
  }
  occupy(paths[count - 1].current);
  return true;
}

bool Painting::extend(Path& path, int contrast) {
  const Geometry::Angle& angle = geometry_.angles[path.angle];
  const Offset pivot = path.pivot + angle.next_pivot;
  weights_.clear();
  std::uint32_t sum = 0;
  for (std::size_t i = 0; i < geometry_.candidates.size(); ++i) {
    sum += weight(angle.turns[i], pivot + geometry_.candidates[i]);
    weights_.push_back(sum);
  }
  // The original gives up where weights of 0 to 1 sum up to less than 1e-4.
  if (sum < 1e-4 * 255 * Geometry::weight_one) return false;
  for (int attempt = 0; attempt < dash_attempts; ++attempt) {
    const std::uint32_t drawn = draws_.below(sum);
    const auto chosen = static_cast<std::size_t>(
        std::upper_bound(weights_.begin(), weights_.end(), drawn) - weights_.begin());
    const PlacedDash dash{geometry_.angles[chosen].dash, pivot + geometry_.candidates[chosen],
                          contrast};
    if (!has_room(dash)) continue;
    occupy(path.current);
    placed_.push_back(dash);
    path.current = dash;
    path.pivot = pivot;
    path.angle = chosen;
    path.tip = dash.at;
    return true;
  }
  return false;
}

/// (255 - the highest level within the margin) * the weight of the turn; 0 outside.
std::uint32_t Painting::weight(std::uint32_t turn, Offset at) {
  if (turn == 0 || !inside(at)) return 0;
  std::uint32_t highest = 0;
  for (const Offset& offset : geometry_.nearby) {
    highest = std::max<std::uint32_t>(highest, level(at + offset));
  }
  return (255 - highest) * turn;
}

bool Painting::has_room(const PlacedDash& dash) {
  const Canvas& occupied = geometry_.dashes[dash.dash].occupied;
  int highest = 0;
  for (int row = 0; row < occupied.rows; ++row) {
    const std::uint8_t* mask =
        &level({dash.at.row - geometry_.reach + row, dash.at.column - geometry_.reach});
    const std::uint8_t* dash_row =
        &occupied.levels[static_cast<std::size_t>(row * occupied.columns)];
    for (int column = 0; column < occupied.columns; ++column) {
      highest = std::max(highest, mask[column] + dash_row[column]);
    }
  }
  return highest < overlap_level;
}

/// Makes a dash part of the mask. Outside the image the mask stays free.
void Painting::occupy(const PlacedDash& dash) {
  const Canvas& occupied = geometry_.dashes[dash.dash].occupied;
  for (int row = 0; row < occupied.rows; ++row) {
    for (int column = 0; column < occupied.columns; ++column) {
      const Offset at{dash.at.row - geometry_.reach + row,
                      dash.at.column - geometry_.reach + column};
      if (inside(at)) level(at) = std::max(level(at), occupied.at(row, column));
    }
  }
}

void Painting::paste(std::vector<int>& light, const Canvas& shape, Offset centre,
                     int contrast) const {
  for (int row = 0; row < shape.rows; ++row) {
    for (int column = 0; column < shape.columns; ++column) {
      const Offset at{centre.row - shape.rows / 2 + row,
                      centre.column - shape.columns / 2 + column};
      if (!inside(at)) continue;
      int& into = light[static_cast<std::size_t>(at.row * recipe_.side + at.column)];
      into = std::max(into, shape.at(row, column) * contrast);
    }
  }
}

}  // namespace attnbench::tasks::data::lra::pathfinder
