#include "reports/verdict/plot.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "reports/figures/palette.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

constexpr std::size_t plot_rows = 14;
constexpr std::size_t plot_margin = 9;  ///< columns left of the lines, for seconds
constexpr std::size_t most_label = 22;  ///< at most
constexpr std::size_t least_columns = 30;
constexpr std::size_t dots_across = 2, dots_down = 4;  ///< of a letter of braille

struct Range {
  double low = 0, high = 0;  ///< logarithms

  void hold(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  /// The dot of `dots` that `value` falls on.
  double dot(double value, std::size_t dots) const {
    const double share = high > low ? (value - low) / (high - low) : 0.5;
    return share * static_cast<double>(dots - 1);
  }
};

/// The number of a colour among the 216 that terminals have; 0, the terminal's own, for black,
/// white and greys, which may be those of its background.
int terminal_colour(const std::string& hex) {
  constexpr int first = 16, steps = 5, grey = 24;
  int number = 0, least = 255, most = 0;
  for (std::size_t at = 1; at < hex.size(); at += 2) {
    const int part = std::stoi(hex.substr(at, 2), nullptr, 16);
    least = std::min(least, part);
    most = std::max(most, part);
    number = number * (steps + 1) + (part * steps + 127) / 255;
  }
  return most - least < grey ? 0 : first + number;
}

std::string switch_to(int colour) {
  return colour == 0 ? "\x1b[0m" : "\x1b[38;5;" + std::to_string(colour) + "m";
}

/// Letters of braille by their dots, each in the colour of what was drawn last.
class Canvas {
 public:
  explicit Canvas(std::size_t columns) : columns_(columns), letters_(columns * plot_rows) {}

  std::size_t dots_wide() const { return columns_ * dots_across; }
  static std::size_t dots_high() { return plot_rows * dots_down; }

  /// A line between two dots; the first row of dots is the uppermost.
  void line(double x0, double y0, double x1, double y1, int colour) {
    const double steps = std::max({std::abs(x1 - x0), std::abs(y1 - y0), 1.0});
    for (double i = 0; i <= steps; ++i) {
      dot(x0 + (x1 - x0) * i / steps, y0 + (y1 - y0) * i / steps, colour);
    }
  }

  /// A row as text, with escape sequences where `coloured`.
  std::string row(std::size_t at, bool coloured) const {
    std::string text;
    int current = 0;
    for (std::size_t i = 0; i < columns_; ++i) {
      const Letter& letter = letters_[at * columns_ + i];
      if (letter.dots == 0) {
        text += ' ';
        continue;
      }
      if (coloured && letter.colour != current) text += switch_to(letter.colour);
      current = letter.colour;
      text += {'\xE2', static_cast<char>(0xA0 | letter.dots >> 6),
               static_cast<char>(0x80 | (letter.dots & 0x3F))};
    }
    return text + (coloured && current != 0 ? switch_to(0) : "");
  }

 private:
  struct Letter {
    int dots = 0;
    int colour = 0;
  };

  void dot(double x, double y, int colour) {
    // Unicode numbers the dots down the first column, down the second, then the fourth row.
    constexpr std::array<std::array<int, dots_down>, dots_across> bits{
        {{0x01, 0x02, 0x04, 0x40}, {0x08, 0x10, 0x20, 0x80}}};
    const auto across = static_cast<std::size_t>(std::lround(x));
    const auto down = static_cast<std::size_t>(std::lround(y));
    Letter& letter = letters_[down / dots_down * columns_ + across / dots_across];
    letter.dots |= bits[across % dots_across][down % dots_down];
    letter.colour = colour;
  }

  std::size_t columns_;
  std::vector<Letter> letters_;
};

struct DrawnLine {
  const RankedRow* row;
  std::string label;
  int colour = 0;
  std::size_t end = 0;  ///< the row of its label
};

std::vector<DrawnLine> drawn_lines(const Ranking& ranking) {
  // As in figures: a row that is called as its mechanism is has that one's own look.
  Palette palette;
  for (const bool own : {true, false}) {
    for (const RankedRow& row : ranking.rows) {
      if (own == (row.label == row.mechanism)) palette.add(row.label, row.mechanism);
    }
  }
  std::vector<DrawnLine> lines;
  for (const RankedRow& row : ranking.rows) {
    const bool above = std::all_of(row.along.begin(), row.along.end(), [](const auto& point) {
      return point.first > 0 && point.second > 0;
    });
    if (row.along.size() < 2 || !above) continue;
    lines.push_back({&row, text::shorten(text::printable(row.label), most_label),
                     terminal_colour(palette.of(row.label).dark)});
  }
  return lines;
}

/// Moves labels apart: each has a row of its own, as near to the end of its line as there is one.
void place_labels(std::vector<DrawnLine>& lines) {
  std::stable_sort(lines.begin(), lines.end(),
                   [](const DrawnLine& a, const DrawnLine& b) { return a.end < b.end; });
  std::size_t free = 0;
  for (DrawnLine& line : lines) {
    line.end = std::max(line.end, free);
    free = line.end + 1;
  }
  std::size_t below = plot_rows;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    line->end = std::min(line->end, below - 1);
    below = line->end;
  }
}

}  // namespace

std::string plot_of(const Ranking& ranking, std::size_t columns, bool colour) {
  std::vector<DrawnLine> lines = drawn_lines(ranking);
  if (ranking.by_quality || lines.size() < 2 || lines.size() > plot_rows) return "";
  std::size_t labels = 0;
  const auto first = lines.front().row->along.front();
  Range across{std::log(first.first), std::log(first.first)};
  Range up{std::log(first.second), std::log(first.second)};
  for (const DrawnLine& line : lines) {
    labels = std::max(labels, text::display_width(line.label));
    for (const auto& [x, seconds] : line.row->along) {
      across.hold(std::log(x));
      up.hold(std::log(seconds));
    }
  }
  if (columns < plot_margin + labels + 1 + least_columns) return "";
  Canvas canvas(columns - plot_margin - labels - 1);
  const auto height = [&](double seconds) {
    return static_cast<double>(Canvas::dots_high() - 1) -
           up.dot(std::log(seconds), Canvas::dots_high());
  };
  // The best is drawn last, over the others.
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto& points = line->row->along;
    for (std::size_t i = 1; i < points.size(); ++i) {
      canvas.line(across.dot(std::log(points[i - 1].first), canvas.dots_wide()),
                  height(points[i - 1].second),
                  across.dot(std::log(points[i].first), canvas.dots_wide()),
                  height(points[i].second), line->colour);
    }
    line->end = static_cast<std::size_t>(std::lround(height(points.back().second))) / dots_down;
  }
  place_labels(lines);
  std::string text = ranking.timed.empty() ? "" : "time of the " + ranking.timed + "\n";
  for (std::size_t row = 0; row < plot_rows; ++row) {
    const double share =
        static_cast<double>(plot_rows - 1 - row) / static_cast<double>(plot_rows - 1);
    const bool marked = row == 0 || row == plot_rows / 2 || row == plot_rows - 1;
    const double seconds = std::exp(up.low + share * (up.high - up.low));
    std::string line = text::pad_left(marked ? text::human_seconds(seconds) : "", plot_margin - 1) +
                       " " + canvas.row(row, colour);
    for (const DrawnLine& one : lines) {
      if (one.end != row) continue;
      line += " " + (colour ? switch_to(one.colour) + one.label + switch_to(0) : one.label);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  const std::string least = place_text(ranking.axis, std::exp(across.low));
  const std::string most = place_text(ranking.axis, std::exp(across.high));
  const std::size_t width = canvas.dots_wide() / dots_across;
  const std::string middle = text::shorten(
      ranking.axis,
      width > least.size() + most.size() + 2 ? width - least.size() - most.size() - 2 : 1);
  const std::size_t blanks = width - std::min(width, least.size() + middle.size() + most.size());
  return text + std::string(plot_margin, ' ') + least + std::string(blanks / 2, ' ') + middle +
         std::string(blanks - blanks / 2, ' ') + most + "\n";
}

}  // namespace attnbench::reports::verdict
