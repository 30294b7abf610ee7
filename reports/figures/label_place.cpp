#include "reports/figures/label_place.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

/// Whether the segment from `a` to `b` meets the box (Liang-Barsky clipping).
bool is_crossed(const Box& box, const Spot& a, const Spot& b) {
  double from = 0;
  double to = 1;
  const auto cut = [&](double step, double room) {
    if (step == 0) return room >= 0;
    const double at = room / step;
    if (step < 0) from = std::max(from, at);
    if (step > 0) to = std::min(to, at);
    return from <= to;
  };
  return cut(a.x - b.x, a.x - box.left) && cut(b.x - a.x, box.right - a.x) &&
         cut(a.y - b.y, a.y - box.top) && cut(b.y - a.y, box.bottom - a.y);
}

/// With room around the words, whose size is an estimate.
std::size_t hits_of(const Box& words, const Obstacles& obstacles) {
  constexpr double room = 3;
  const Box box{words.left - room, words.top, words.right + room, words.bottom};
  auto hits =
      static_cast<std::size_t>(std::count_if(obstacles.marks.begin(), obstacles.marks.end(),
                                             [&](const Box& mark) { return overlap(box, mark); }));
  for (const std::vector<Spot>& line : obstacles.lines) {
    for (std::size_t i = 1; i < line.size(); ++i) hits += is_crossed(box, line[i - 1], line[i]);
  }
  return hits;
}

/// Width and height of text; a letter is a little more than half as wide as it is high.
Spot size_of_words(const std::string& words, double font) {
  std::istringstream lines(words);
  std::size_t longest = 0;
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    longest = std::max(longest, text::display_width(line));
  }
  return {0.6 * font * static_cast<double>(longest), (font + 2) * static_cast<double>(count)};
}

/// From an anchor to the right, the nearest first.
const std::vector<Spot>& offsets() {
  static const std::vector<Spot> sorted = [] {
    std::vector<Spot> all;
    for (const double across : {8.0, 12.0, 24.0, 40.0}) {
      for (const double along : {0.0, 12.0, -12.0, 24.0, -24.0, 36.0, -36.0}) {
        const bool touches = across < 12 && along == 0;
        if (!touches) all.push_back({across, along});
      }
    }
    std::stable_sort(all.begin(), all.end(), [](const Spot& a, const Spot& b) {
      return a.x * a.x + a.y * a.y < b.x * b.x + b.y * b.y;
    });
    return all;
  }();
  return sorted;
}

}  // namespace

bool overlap(const Box& a, const Box& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

LabelPlace place_label(const std::string& words, double font, const std::vector<Spot>& anchors,
                       bool to_right, const Obstacles& obstacles, double width, double height) {
  const Spot size = size_of_words(words, font);
  LabelPlace best;
  bool any = false;
  for (std::size_t i = 0; i < anchors.size(); ++i) {
    for (const Spot& off : offsets()) {
      for (const bool right : {to_right, !to_right}) {
        LabelPlace place{i, right, right ? off.x : -off.x, off.y, {}, 0};
        const double near = anchors[i].x + place.dx;
        const double top = anchors[i].y + off.y - font;
        place.box = {right ? near : near - size.x, top, right ? near + size.x : near, top + size.y};
        const bool inside = place.box.left >= 0 && place.box.right <= width && place.box.top >= 0 &&
                            place.box.bottom <= height;
        if (any && !inside) continue;
        place.hits = hits_of(place.box, obstacles) + (inside ? 0 : 1000);
        if (any && place.hits >= best.hits) continue;
        best = place;
        any = true;
        if (best.hits == 0) return best;
      }
    }
  }
  return best;
}

}  // namespace attnbench::reports
