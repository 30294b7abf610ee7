// One Pathfinder image under way: two paths and distractors grow dash by dash on a mask of what is
// occupied, and are rendered at the end. The steps, their order and their constants are those of
// the recipe that tasks/data/lra/pathfinder.hpp names.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "tasks/data/lra/pathfinder_geometry.hpp"

namespace attnbench::tasks::data::lra::pathfinder {

/// A dash on the image: which, and the pixel of its tail.
struct PlacedDash {
  std::size_t dash;
  Offset at;
  int contrast;
};

/// A path while it grows.
struct Path {
  Offset origin, tip, pivot;
  std::size_t angle = 0;
  PlacedDash current{};  ///< not yet part of the mask
};

class Painting {
 public:
  /// All three must outlive it.
  Painting(const Recipe& recipe, const Geometry& geometry, Random& draws);

  /// Places both paths, or neither and returns false.
  bool paths(int dashes, std::array<Path, 2>& paths);
  /// Places one distractor, or none and returns false.
  bool distractor(int dashes);
  /// The dashes and two markers, stretched to 0 to 255, halves rounded up: side x side in rows.
  std::vector<std::uint8_t> render(const Canvas& marker, Offset first, Offset second) const;

 private:
  std::uint8_t& level(Offset at) {
    return mask_[static_cast<std::size_t>((at.row + pad_) * stride_ + at.column + pad_)];
  }
  bool inside(Offset at) const {
    return at.row >= 0 && at.row < recipe_.side && at.column >= 0 && at.column < recipe_.side;
  }
  int between(int low, int high) {
    return low + static_cast<int>(draws_.below(static_cast<std::uint32_t>(high - low + 1)));
  }
  bool set_beginning(Path& path, Offset tail, std::size_t degree) const;
  bool begin_first(Path& path);
  bool begin_second(const Path& first, Path& path);
  bool begin_anywhere(Path& path);
  bool is_free(const std::vector<Offset>& kernel, Offset tail);
  bool draw_free(const std::vector<Offset>& kernel, Offset& tail);
  void place_first(Path& path, int contrast);
  bool grow(Path* paths, int count, int dashes, int contrast);
  bool extend(Path& path, int contrast);
  std::uint32_t weight(std::uint32_t turn, Offset at);
  bool has_room(const PlacedDash& dash);
  void occupy(const PlacedDash& dash);
  void paste(std::vector<int>& light, const Canvas& shape, Offset centre, int contrast) const;

  const Recipe& recipe_;
  const Geometry& geometry_;
  Random& draws_;
  int pad_;  ///< of free mask around the image, so that no dash needs clipping where it is tried
  int stride_;
  std::vector<std::uint8_t> mask_;  ///< occupied 0 to 255
  std::vector<PlacedDash> placed_;
  std::vector<std::uint32_t> weights_;
};

}  // namespace attnbench::tasks::data::lra::pathfinder
