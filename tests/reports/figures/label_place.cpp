#include "reports/figures/label_place.hpp"

#include <utility>
#include <vector>

#include "tests/support/catch.hpp"

using namespace attnbench;

namespace {

constexpr double frame_width = 560;
constexpr double frame_height = 340;
const char* const label_words = "one look-up into\na window, predicted";

reports::Box mark_around(double x, double y) { return {x - 5, y - 5, x + 5, y + 5}; }

bool is_in_frame(const reports::Box& box) {
  return box.left >= 0 && box.right <= frame_width && box.top >= 0 && box.bottom <= frame_height;
}

}  // namespace

TEST_CASE("a label stands on the wanted side where nothing is, inside of the frame", "[reports]") {
  const auto placed = [](double x, double y, bool to_right) {
    const auto place =
        reports::place_label(label_words, 10, {{x, y}}, to_right, {}, frame_width, frame_height);
    CHECK(place.hits == 0);
    CHECK(is_in_frame(place.box));
    return place;
  };
  CHECK(placed(280, 170, true).to_right);
  CHECK(placed(280, 170, true).box.left > 280);
  CHECK_FALSE(placed(280, 170, false).to_right);
  CHECK_FALSE(placed(550, 335, true).to_right);
}

TEST_CASE("a label lies over no mark and no line of a crowded figure", "[reports]") {
  // Points on both sides of a rising line, and a front's step left of it.
  reports::Obstacles obstacles;
  obstacles.lines = {{{40, 338}, {130, 300}, {180, 240}, {200, 200}, {240, 100}, {270, 10}},
                     {{20, 298}, {140, 298}, {140, 60}, {240, 60}}};
  for (const auto& [x, y] :
       {std::pair{205.0, 262.0}, std::pair{200.0, 276.0}, std::pair{216.0, 205.0},
        std::pair{250.0, 215.0}, std::pair{300.0, 205.0}, std::pair{140.0, 160.0}}) {
    obstacles.marks.push_back(mark_around(x, y));
  }
  const reports::Box other{400, 280, 560, 292};  // words of another
  obstacles.marks.push_back(other);
  const std::vector<reports::Spot> anchors{{190, 220}, {180, 240}, {200, 200}, {240, 100}};
  const reports::LabelPlace place =
      reports::place_label(label_words, 10, anchors, false, obstacles, frame_width, frame_height);
  CHECK(place.hits == 0);
  CHECK(is_in_frame(place.box));
  for (const reports::Box& mark : obstacles.marks) CHECK_FALSE(reports::overlap(place.box, mark));
}

TEST_CASE("where everything is taken a label lies over the least", "[reports]") {
  reports::Obstacles obstacles;
  for (double x = 5; x < frame_width; x += 10) {
    for (double y = 5; y < frame_height; y += 10) {
      obstacles.marks.push_back(mark_around(x, y));
      if (x < 180) obstacles.marks.push_back(mark_around(x, y));
    }
  }
  const reports::LabelPlace place =
      reports::place_label("words", 10, {{180, 170}}, false, obstacles, frame_width, frame_height);
  CHECK(place.hits > 0);
  CHECK(place.to_right);  // where marks lie once, not twice
}
