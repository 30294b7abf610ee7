#include "reports/figures/points.hpp"

#include <algorithm>

#include "reports/tables/conditions.hpp"
#include "reports/tables/least.hpp"

namespace attnbench::reports {
namespace {

/// The middle one of the values that are not zero; 0 without any.
double typical(std::vector<double> values) {
  std::erase(values, 0.0);
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

Scale choose(double value, const std::vector<Scale>& scales) {
  for (const Scale& scale : scales) {
    if (value * scale.factor >= 1) return scale;
  }
  return scales.back();
}

std::optional<PlottedValue> measured_time(const CellRecord& cell, const std::string& what) {
  const result::Timing* const timing = result::timing_of(cell, what);
  if (timing == nullptr) return std::nullopt;
  return PlottedValue{
      timing->median_seconds, timing->low_seconds, timing->high_seconds,
      interval_words(timing->interval, timing->rounds.size(), timing->disturbed_rounds())};
}

}  // namespace

Quantity time_quantity(const std::string& what) {
  return [what](const CellRecord& cell) {
    return result::is_ok(cell) ? measured_time(cell, what) : std::nullopt;
  };
}

Quantity disturbed_time_quantity(const std::string& what) {
  return [what](const CellRecord& cell) -> std::optional<PlottedValue> {
    const result::Timing* const timing =
        result::is_disturbed(cell) ? result::timing_of(cell, what) : nullptr;
    if (timing == nullptr) return std::nullopt;
    const double least = least_seconds(*timing);
    return PlottedValue{least, least, least, ""};
  };
}

Quantity number_quantity(Values CellRecord::*part, const std::string& key) {
  return [part, key](const CellRecord& cell) -> std::optional<PlottedValue> {
    const bool usable = result::is_ok(cell) || result::is_disturbed(cell);
    const auto number = usable ? number_of(cell.*part, key) : std::nullopt;
    if (!number) return std::nullopt;
    return PlottedValue{*number, *number, *number, ""};
  };
}

const std::vector<Scale>& time_scales() {
  static const std::vector<Scale> scales{{1, "s"}, {1e3, "ms"}, {1e6, "µs"}};
  return scales;
}

const std::vector<Scale>& byte_scales() {
  constexpr double kibi = 1024;
  static const std::vector<Scale> scales{
      {1 / (kibi * kibi * kibi), "GiB"}, {1 / (kibi * kibi), "MiB"}, {1 / kibi, "KiB"}, {1, "B"}};
  return scales;
}

Scale time_scale(const std::vector<double>& seconds) {
  return choose(typical(seconds), time_scales());
}

Scale byte_scale(const std::vector<double>& bytes) { return choose(typical(bytes), byte_scales()); }

Json tooltip(const std::vector<std::pair<std::string, std::string>>& own) {
  Json list = Json::array();
  const auto add = [&](const auto& columns) {
    for (const auto& [field, title] : columns) {
      list.push_back({{"field", field}, {"title", title}, {"type", "nominal"}});
    }
  };
  add(own);
  add(provenance_columns());
  return list;
}

}  // namespace attnbench::reports
