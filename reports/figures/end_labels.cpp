#include "reports/figures/end_labels.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

constexpr double font = 11;
constexpr double line_height = 13;
constexpr double beside = 8;  ///< pixels between a line's end and its label
constexpr double letter_width = 6.2;
constexpr double max_label = 175;  ///< pixels; longer ones are cut by the renderer

/// A scale of Vega-Lite from values to pixels, downwards.
class Pixels {
 public:
  Pixels(const Json& y, double height) : height_(height) {
    const Json& scale = y.at("scale");
    log_ = scale.value("type", "linear") == "log";
    padding_ = scale.value("padding", 0.0);
    bottom_ = along(scale.at("domain").at(0).get<double>());
    top_ = along(scale.at("domain").at(1).get<double>());
  }
  double of(double value) const {
    if (top_ <= bottom_) return height_ / 2;
    return padding_ + (height_ - 2 * padding_) * (top_ - along(value)) / (top_ - bottom_);
  }
  double value_at(double pixel) const {
    const double at = top_ - (pixel - padding_) * (top_ - bottom_) / (height_ - 2 * padding_);
    return log_ ? std::exp(at) : at;
  }

 private:
  double along(double value) const { return log_ ? std::log(value) : value; }

  double height_;
  bool log_ = false;
  double padding_ = 0;
  double bottom_ = 0;
  double top_ = 0;
};

/// Neighbours that stand exactly `gap` apart, around their mean.
struct Block {
  std::size_t count = 0;
  double sum = 0;  ///< of the places wanted

  double first(double gap) const {
    const auto n = static_cast<double>(count);
    return sum / n - gap * (n - 1) / 2;
  }
  double end(double gap) const { return first(gap) + gap * static_cast<double>(count); }
};

}  // namespace

std::vector<double> spread_apart(const std::vector<double>& places, double gap, double least,
                                 double most) {
  std::vector<std::size_t> order(places.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return places[a] < places[b]; });
  std::vector<Block> blocks;
  for (const std::size_t i : order) {
    blocks.push_back({1, places[i]});
    while (blocks.size() > 1 && blocks[blocks.size() - 2].end(gap) > blocks.back().first(gap)) {
      const Block last = blocks.back();
      blocks.pop_back();
      blocks.back().count += last.count;
      blocks.back().sum += last.sum;
    }
  }
  std::vector<double> sorted;
  for (const Block& block : blocks) {
    for (std::size_t i = 0; i < block.count; ++i) {
      sorted.push_back(block.first(gap) + gap * static_cast<double>(i));
    }
  }
  // From both edges inwards; where there is no room for all, the lower edge gives way.
  for (std::size_t i = sorted.size(); i-- > 0;) {
    const auto after = static_cast<double>(sorted.size() - 1 - i);
    sorted[i] = std::min(sorted[i], most - gap * after);
  }
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    sorted[i] = std::max(sorted[i], least + gap * static_cast<double>(i));
  }
  std::vector<double> spread(places.size());
  for (std::size_t i = 0; i < order.size(); ++i) spread[order[i]] = sorted[i];
  return spread;
}

Json end_label_layer(const std::vector<LineEnd>& ends, const Json& y, double height) {
  const Pixels pixels(y, height);
  std::map<std::string, std::vector<std::size_t>> beside_each_other;  // by their place on x
  for (std::size_t i = 0; i < ends.size(); ++i) {
    beside_each_other[ends[i].x.dump()].push_back(i);
  }
  Json rows = Json::array();
  for (const auto& [x, column] : beside_each_other) {
    std::vector<double> wanted;
    for (const std::size_t i : column) wanted.push_back(pixels.of(ends[i].y));
    const std::vector<double> spread = spread_apart(wanted, line_height, 0, height);
    for (std::size_t k = 0; k < column.size(); ++k) {
      const LineEnd& end = ends[column[k]];
      rows.push_back({{"series", end.series}, {"x", end.x}, {"y", pixels.value_at(spread[k])}});
    }
  }
  return {{"data", {{"name", "labels"}, {"values", std::move(rows)}}},
          {"mark",
           {{"type", "text"},
            {"align", "left"},
            {"baseline", "middle"},
            {"dx", beside},
            {"fontSize", font},
            {"limit", max_label},
            {"cursor", "pointer"}}},
          {"encoding",
           {{"y", y},
            {"text", {{"field", "series"}}},
            {"opacity", {{"condition", {{"param", "shown"}, {"value", 1}}}, {"value", 0.35}}}}},
          {"params", Json::array({{{"name", "shown"},
                                   {"select", {{"type", "point"}, {"fields", {"series"}}}}}})}};
}

Json with_label_room(Json x, const std::vector<LineEnd>& ends) {
  double widest = 0;
  for (const LineEnd& end : ends) {
    const auto letters = static_cast<double>(text::display_width(end.series));
    widest = std::max(widest, std::min(letter_width * letters, max_label));
  }
  const auto room = static_cast<int>(std::ceil(widest + beside));
  // On a phone half of the width stays for the lines.
  x["scale"]["range"] =
      Json::array({0, {{"expr", "max(width / 2, width - " + std::to_string(room) + ")"}}});
  return x;
}

}  // namespace attnbench::reports
