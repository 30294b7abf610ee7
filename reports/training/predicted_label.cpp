#include "reports/training/predicted_label.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "reports/figures/label_place.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

const char* const predicted_words = "one look-up into\na window, predicted";

/// The marks of `sketch` in a picture of the usual size, for words that keep off them.
class Picture {
 public:
  static constexpr double width = 560;  // what the frame of the axes leaves
  static constexpr double height = 340;

  Picture(const Sketch& sketch, const Json& layers) {
    std::vector<double> across;
    std::vector<double> up;
    for (const TrainingRow& row : sketch.rows) {
      if (row.x.is_number()) across.push_back(row.x);
      up.push_back(row.y);
    }
    for (const Published& number : sketch.published) {
      across.push_back(number.x);
      up.push_back(number.y);
    }
    left_ = *std::min_element(across.begin(), across.end());
    right_ = *std::max_element(across.begin(), across.end());
    is_logarithmic_ =
        left_ > 0 && sketch.x.value("scale", Json::object()).value("type", "") == "log";
    const Json domain = sketch.y_encoding.at("scale").value("domain", Json());
    bottom_ = domain.is_array() ? domain[0].get<double>() : *std::min_element(up.begin(), up.end());
    top_ = domain.is_array() ? domain[1].get<double>() : *std::max_element(up.begin(), up.end());
    std::map<std::string, std::vector<Spot>> lines;
    for (const TrainingRow& row : sketch.rows) {
      if (row.x.is_number()) add(row, lines);
    }
    for (const Published& number : sketch.published) {
      const Spot at = spot(number.x, number.y);
      add_mark(at, 5);
      lines["published " + number.label].push_back(at);
    }
    for (const Json& layer : layers) add_level(layer);
    for (auto& [name, line] : lines) marks_.lines.push_back(std::move(line));
  }

  Spot spot(double x, double y) const {
    const auto share = [](double off, double range) { return range > 0 ? off / range : 0.5; };
    constexpr double padding = 16;
    const double part = is_logarithmic_ ? std::log(x / left_) : x - left_;
    const double whole = is_logarithmic_ ? std::log(right_ / left_) : right_ - left_;
    return {padding + (width - 2 * padding) * share(part, whole),
            height * (1 - share(y - bottom_, top_ - bottom_))};
  }
  const Obstacles& marks() const { return marks_; }

 private:
  void add(const TrainingRow& row, std::map<std::string, std::vector<Spot>>& lines) {
    const Spot at = spot(row.x, row.y);
    if (row.kind == "dot") add_mark(at, 4);
    if (row.kind == "reach") add_mark(at, 9);
    if (row.kind != "mean" && row.kind != "predicted" && row.kind != "front") return;
    std::vector<Spot>& line = lines[row.kind + " " + row.json.value("id", "")];
    if (row.kind == "front" && !line.empty()) line.push_back({at.x, line.back().y});
    line.push_back(at);
  }
  void add_mark(const Spot& at, double radius) {
    marks_.marks.push_back({at.x - radius, at.y - radius, at.x + radius, at.y + radius});
  }
  /// Adds a level line (chance, guesses, counts) across the width, and its label at the right.
  void add_level(const Json& layer) {
    const Json& values = layer.value("data", Json::object()).value("values", Json::array());
    if (values.empty() || !values[0].contains("what") || !values[0].contains("y")) return;
    const double y = spot(left_, values[0]["y"].get<double>()).y;
    const auto letters = static_cast<double>(values[0]["what"].get<std::string>().size());
    marks_.lines.push_back({{0, y}, {width, y}});
    marks_.marks.push_back({width - 6 * letters, y - 15, width, y - 3});
  }

  bool is_logarithmic_ = false;  ///< the axis across
  double left_ = 1;
  double right_ = 1;
  double bottom_ = 0;
  double top_ = 1;
  Obstacles marks_;
};

}  // namespace

Json predicted_label(const Sketch& sketch, const Json& layers, const Json& y) {
  std::vector<const TrainingRow*> rows;
  for (const TrainingRow& row : sketch.rows) {
    if (row.kind == "predicted" && row.x.is_number()) rows.push_back(&row);
  }
  if (rows.empty()) return {};
  const auto off = [](const TrainingRow* row) { return std::abs(row->y - 1.0 / 3); };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto* a, const auto* b) { return off(a) < off(b); });
  const Picture picture(sketch, layers);
  std::vector<Spot> anchors;
  for (const TrainingRow* row : rows) anchors.push_back(picture.spot(row->x, row->y));
  constexpr double font = 10;
  const LabelPlace place =
      place_label(predicted_words, font, anchors, anchors.front().x < Picture::width / 2,
                  picture.marks(), Picture::width, Picture::height);
  Json row = rows[place.anchor]->json;
  row.update({{"words", predicted_words}});
  return {{"data", {{"values", Json::array({row})}}},
          {"mark",
           {{"type", "text"},
            {"align", place.to_right ? "left" : "right"},
            {"dx", place.dx},
            {"dy", place.dy},
            {"fontSize", font},
            {"lineBreak", "\n"}}},
          {"encoding",
           {{"y", y},
            {"text", {{"field", "words"}, {"type", "nominal"}}},
            {"opacity", legend_opacity(1)}}}};
}

}  // namespace attnbench::reports
