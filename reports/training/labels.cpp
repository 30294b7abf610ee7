#include "reports/training/labels.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/figures/label_place.hpp"
#include "reports/figures/spec.hpp"

namespace attnbench::reports {
namespace {

const char* const predicted_words = "one look-up into\na window, predicted";

/// What the frame of the axes leaves of a picture, in pixels.
struct Extent {
  double width;
  double height;
};
constexpr Extent wide{580, figure_height};
constexpr Extent narrow{285, 280};  ///< as the page draws it on a phone
constexpr int narrow_below = 400;   ///< pixels of width
constexpr double above = 12;        ///< pixels that words may stand out of the frame, upwards

/// The marks of `sketch` in a picture, for words that keep off them.
class Picture {
 public:
  Picture(const Sketch& sketch, const Json& layers, const Extent& extent) : extent_(extent) {
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
    for (const Json& layer : layers) {
      if (const auto level = level_of(layer)) up.push_back(level->first);
    }
    left_ = *std::min_element(across.begin(), across.end());
    right_ = *std::max_element(across.begin(), across.end());
    is_logarithmic_ =
        left_ > 0 && sketch.x.value("scale", Json::object()).value("type", "") == "log";
    const Json domain = sketch.y_encoding.at("scale").value("domain", Json());
    if (domain.is_array()) {
      bottom_ = domain[0];
      top_ = domain[1];
    } else {  // Vega rounds it to ticks, a little beyond
      const auto [least, most] = std::minmax_element(up.begin(), up.end());
      constexpr double room = 0.05;
      bottom_ = *least - room * (*most - *least);
      top_ = *most + room * (*most - *least);
    }
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
    return {padding + (extent_.width - 2 * padding) * share(part, whole),
            above + extent_.height * (1 - share(y - bottom_, top_ - bottom_))};
  }
  /// The place of words beside one of `anchors`, the best first, which other words then keep off.
  LabelPlace place(const std::string& words, double font, const std::vector<Spot>& anchors) {
    const bool to_right = anchors.front().x < extent_.width / 2;
    LabelPlace found =
        place_label(words, font, anchors, to_right, marks_, extent_.width, above + extent_.height);
    marks_.marks.push_back(found.box);
    return found;
  }

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
  /// A level line (chance, guesses, counts): where it is, and how long its label.
  static std::optional<std::pair<double, double>> level_of(const Json& layer) {
    const Json& values = layer.value("data", Json::object()).value("values", Json::array());
    if (values.empty() || !values[0].contains("what") || !values[0].contains("y")) return {};
    constexpr double letter = 6;
    const auto letters = static_cast<double>(values[0]["what"].get<std::string>().size());
    return std::pair(values[0]["y"].get<double>(), letter * letters);
  }
  /// Adds a level line across the width, and its label at the right.
  void add_level(const Json& layer) {
    const auto level = level_of(layer);
    if (!level) return;
    const double y = spot(left_, level->first).y;
    marks_.lines.push_back({{0, y}, {extent_.width, y}});
    marks_.marks.push_back({extent_.width - level->second, y - 15, extent_.width, y - 3});
  }

  Extent extent_;
  bool is_logarithmic_ = false;  ///< the axis across
  double left_ = 1;
  double right_ = 1;
  double bottom_ = 0;
  double top_ = 1;
  Obstacles marks_;
};

/// Words, and the rows that they may stand beside, the best first.
struct Words {
  std::string text;
  double font;
  std::vector<const TrainingRow*> rows;
};

/// The front's names, then what is predicted.
std::vector<Words> words_of(const Sketch& sketch) {
  std::vector<Words> all;
  Words predicted{predicted_words, 10, {}};
  for (const TrainingRow& row : sketch.rows) {
    if (!row.x.is_number()) continue;
    if (row.kind == "predicted") predicted.rows.push_back(&row);
    if (row.kind != "front") continue;
    if (all.empty() || all.back().text != row.series) all.push_back({row.series, 11, {&row}});
  }
  const auto off = [](const TrainingRow* row) { return std::abs(row->y - 1.0 / 3); };
  std::stable_sort(predicted.rows.begin(), predicted.rows.end(),
                   [&](const auto* a, const auto* b) { return off(a) < off(b); });
  if (!predicted.rows.empty()) all.push_back(std::move(predicted));
  return all;
}

/// A row for each of `words` in a picture of that extent.
void add_placed(Json& rows, const std::vector<Words>& all, Picture picture, bool is_narrow) {
  for (const Words& words : all) {
    // Letters stand on a line that is a little below the middle of the mark beside them.
    const double sink = words.rows.size() == 1 ? 4 : 0;
    std::vector<Spot> anchors;
    for (const TrainingRow* row : words.rows) {
      const Spot at = picture.spot(row->x, row->y);
      anchors.push_back({at.x, at.y + sink});
    }
    const LabelPlace place = picture.place(words.text, words.font, anchors);
    const TrainingRow& row = *words.rows[place.anchor];
    rows.push_back({{"series", row.series},
                    {"x", row.x},
                    {"y", row.y},
                    {"words", words.text},
                    {"font", words.font},
                    {"align", place.to_right ? "left" : "right"},
                    {"dx", place.dx},
                    {"dy", place.dy + sink},
                    {"narrow", is_narrow}});
  }
}

}  // namespace

Json label_layer(const Sketch& sketch, const Json& layers, const Json& y) {
  const std::vector<Words> all = words_of(sketch);
  if (all.empty()) return {};
  Json rows = Json::array();
  add_placed(rows, all, Picture(sketch, layers, wide), false);
  add_placed(rows, all, Picture(sketch, layers, narrow), true);
  const auto of_row = [](const char* field) {
    return Json{{"expr", std::string("datum.") + field}};
  };
  const std::string shown = "datum.narrow == (width < " + std::to_string(narrow_below) + ")";
  return {{"data", {{"name", "words"}, {"values", std::move(rows)}}},
          {"transform", Json::array({{{"filter", shown}}})},
          {"mark",
           {{"type", "text"},
            {"align", of_row("align")},
            {"dx", of_row("dx")},
            {"dy", of_row("dy")},
            {"fontSize", of_row("font")},
            {"lineBreak", "\n"}}},
          {"encoding",
           {{"y", y},
            {"text", {{"field", "words"}, {"type", "nominal"}}},
            {"opacity", legend_opacity(1)}}}};
}

}  // namespace attnbench::reports
