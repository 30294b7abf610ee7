#include "core/text/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <sstream>

namespace attnbench::text {
namespace {

struct Unit {
  double size;
  const char* name;
};

/// `value`, of at least 1, with `digits` (2 or 3) significant digits where it is below 1000; from
/// 1e9 on as 1.23e+12.
std::string with_digits(double value, int digits) {
  const double magnitude = std::fabs(value);
  // Half a unit of the last digit below 100 and below 10: what is rounded up to them.
  const double hundred = digits == 2 ? 99.5 : 99.95;
  const double ten = digits == 2 ? 9.95 : 9.995;
  const int decimals = (magnitude >= hundred ? 0 : magnitude >= ten ? 1 : 2) - (3 - digits);
  const double rounded = decimals < 0 ? std::round(value / 10) * 10 : value;
  constexpr double readable = 1e9;
  std::array<char, 64> text{};
  if (magnitude < readable) {
    std::snprintf(text.data(), text.size(), "%.*f", std::max(decimals, 0), rounded);
  } else {
    std::snprintf(text.data(), text.size(), "%.*e", digits - 1, value);
  }
  return text.data();
}

/// With the largest unit in which the value, once rounded, is at least 1; `units` from large to
/// small.
template <std::size_t count>
std::string with_unit(double value, const std::array<Unit, count>& units, int digits = 3) {
  const double least = digits == 2 ? 0.995 : 0.9995;
  for (const Unit& unit : units) {
    if (std::fabs(value) >= unit.size * least) {
      return with_digits(value / unit.size, digits) + unit.name;
    }
  }
  return with_digits(value / units.back().size, digits) + units.back().name;
}

std::string seconds_text(double seconds, int digits, Letters letters) {
  const char* micro = letters == Letters::utf8 ? " µs" : " us";
  return with_unit(seconds,
                   std::array<Unit, 4>{{{1, " s"}, {1e-3, " ms"}, {1e-6, micro}, {1e-9, " ns"}}},
                   digits);
}

/// Bytes at which a UTF-8 letter begins.
bool begins_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xC0) != 0x80; }

}  // namespace

std::string human_seconds(double seconds, Letters letters) {
  return seconds_text(seconds, 3, letters);
}

int supported_digits(double value, double low, double high) {
  const double magnitude = std::fabs(value);
  if (magnitude == 0 || !std::isfinite(magnitude)) return 3;
  const double second_digit = std::pow(10, std::floor(std::log10(magnitude)) - 1);
  return std::max(high - value, value - low) >= second_digit / 2 ? 2 : 3;
}

std::string measured_seconds(double seconds, double low, double high, Letters letters) {
  return seconds_text(seconds, supported_digits(seconds, low, high), letters);
}

std::string human_bytes(double bytes) {
  if (bytes < 1023.5) return std::to_string(std::lround(bytes)) + " B";
  constexpr double kibi = 1024;
  return with_unit(bytes, std::array<Unit, 4>{{{kibi * kibi * kibi * kibi, " TiB"},
                                               {kibi * kibi * kibi, " GiB"},
                                               {kibi * kibi, " MiB"},
                                               {kibi, " KiB"}}});
}

std::string human_count(double count) {
  if (count < 999.5 && count == std::floor(count)) return std::to_string(std::lround(count));
  return with_unit(
      count, std::array<Unit, 6>{
                 {{1e15, " P"}, {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}, {1, ""}}});
}

std::string human_spread(double median, double low, double high, Letters letters) {
  const double share = std::max(high - median, median - low) / median * 100;
  if (share > 100) return "unsteady";
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), share < 9.95 ? "%.1f" : "%.0f", share);
  return (letters == Letters::utf8 ? "±" : "+-") + std::string(text.data()) + " %";
}

std::string human_value(const nlohmann::json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_object() && value.contains("left") && value.contains("right")) {
    return human_value(value["left"]) + "+" + human_value(value["right"]);
  }
  return value.dump();
}

std::string now_text() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 32> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text.data();
}

std::size_t display_width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_letter));
}

std::string pad_right(const std::string& text, std::size_t width) {
  const std::size_t used = display_width(text);
  return used < width ? text + std::string(width - used, ' ') : text;
}

std::string pad_left(const std::string& text, std::size_t width) {
  const std::size_t used = display_width(text);
  return used < width ? std::string(width - used, ' ') + text : text;
}

std::string shorten(const std::string& text, std::size_t width, Letters letters) {
  if (display_width(text) <= width) return text;
  const std::string mark = letters == Letters::utf8 ? "…" : "~";
  std::string cut;
  std::size_t used = 0;
  for (const char byte : text) {
    if (begins_letter(byte) && ++used >= width) break;
    cut += byte;
  }
  return cut + mark;
}

std::vector<std::string> wrap(const std::string& text, std::size_t width) {
  std::istringstream words(text);
  std::vector<std::string> lines;
  for (std::string word; words >> word;) {
    if (lines.empty() || display_width(lines.back()) + 1 + display_width(word) > width) {
      lines.push_back(word);
    } else {
      lines.back() += " " + word;
    }
  }
  return lines;
}

}  // namespace attnbench::text
