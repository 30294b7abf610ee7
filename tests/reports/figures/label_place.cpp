#include "reports/figures/label_place.hpp"

#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace attnbench::reports;

namespace {

constexpr double width = 560;
constexpr double height = 340;
const char* const words = "one look-up into\na window, predicted";

Box around(double x, double y) { return {x - 5, y - 5, x + 5, y + 5}; }

bool is_inside(const Box& box) {
  return box.left >= 0 && box.right <= width && box.top >= 0 && box.bottom <= height;
}

}  // namespace

TEST_CASE("a label stands on the wanted side where nothing is", "[reports]") {
  const LabelPlace place = place_label(words, 10, {{280, 170}}, true, {}, width, height);
  CHECK(place.to_right);
  CHECK(place.hits == 0);
  CHECK(place.box.left > 280);
  CHECK(is_inside(place.box));
  CHECK_FALSE(place_label(words, 10, {{280, 170}}, false, {}, width, height).to_right);
}

TEST_CASE("a label stays inside of the frame", "[reports]") {
  const LabelPlace place = place_label(words, 10, {{550, 335}}, true, {}, width, height);
  CHECK_FALSE(place.to_right);
  CHECK(is_inside(place.box));
}

TEST_CASE("a label lies over no mark and no line of a crowded figure", "[reports]") {
  // Points on both sides of a rising line, and a front's step left of it.
  Obstacles obstacles;
  obstacles.lines = {{{40, 338}, {130, 300}, {180, 240}, {200, 200}, {240, 100}, {270, 10}},
                     {{20, 298}, {140, 298}, {140, 60}, {240, 60}}};
  for (const auto& [x, y] :
       {std::pair{205.0, 262.0}, std::pair{200.0, 276.0}, std::pair{216.0, 205.0},
        std::pair{250.0, 215.0}, std::pair{300.0, 205.0}, std::pair{140.0, 160.0}}) {
    obstacles.marks.push_back(around(x, y));
  }
  const Box other{400, 280, 560, 292};  // words of another
  obstacles.marks.push_back(other);
  const std::vector<Spot> anchors{{190, 220}, {180, 240}, {200, 200}, {240, 100}};
  const LabelPlace place = place_label(words, 10, anchors, false, obstacles, width, height);
  CHECK(place.hits == 0);
  CHECK(is_inside(place.box));
  for (const Box& mark : obstacles.marks) CHECK_FALSE(overlap(place.box, mark));
}

TEST_CASE("where everything is taken a label lies over the least", "[reports]") {
  Obstacles obstacles;
  for (double x = 5; x < width; x += 10) {
    for (double y = 5; y < height; y += 10) {
      obstacles.marks.push_back(around(x, y));
      if (x < 180) obstacles.marks.push_back(around(x, y));
    }
  }
  const LabelPlace place = place_label("words", 10, {{180, 170}}, false, obstacles, width, height);
  CHECK(place.hits > 0);
  CHECK(place.to_right);  // where marks lie once, not twice
}
