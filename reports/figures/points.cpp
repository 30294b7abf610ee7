#include "reports/figures/points.hpp"

#include <algorithm>
#include <set>

#include "core/result/record.hpp"
#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

const std::string missing = "–";

std::string text_at(const Json& cell, const std::string& key) {
  const Json* value = result::value_of(cell, key);
  return value ? result::human_value(*value) : missing;
}

/// A size as the problem has it, since a setting of 0 may have been derived.
std::string size_at(const Json& cell, const std::string& key) {
  const auto problem = cell.find("problem");
  if (problem != cell.end() && problem->contains(key)) return result::human_value((*problem)[key]);
  return text_at(cell, key);
}

/// The implementation that ran, with what was asked for where that was not a name.
std::string implementation_of(const Json& cell) {
  const std::string asked = cell.value("implementation", missing);
  if (!cell.contains("chosen")) return asked;
  const std::string ran = cell["chosen"].value("implementation", asked);
  return ran == asked ? ran : ran + " (" + asked + ")";
}

/// Of the weights, and of products where they are computed in another.
std::string dtype_of(const Json& cell) {
  const std::string dtype = size_at(cell, "dtype");
  const Json* const autocast = result::value_of(cell, "autocast");
  if (autocast == nullptr || *autocast == "off") return dtype;
  return dtype + " with autocast to " + result::human_value(*autocast);
}

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

std::optional<Measured> time_of(const Json& cell, const std::string& what) {
  const auto timing = result::timing_of(cell, what);
  if (!timing) return std::nullopt;
  return Measured{timing->median_seconds, timing->low_seconds, timing->high_seconds,
                  interval_words(timing->interval, timing->rounds, timing->disturbed)};
}

}  // namespace

Quantity time_quantity(const std::string& what) {
  return
      [what](const Json& cell) { return result::is_ok(cell) ? time_of(cell, what) : std::nullopt; };
}

Quantity disturbed_time_quantity(const std::string& what) {
  return [what](const Json& cell) {
    return result::is_disturbed(cell) ? time_of(cell, what) : std::nullopt;
  };
}

Quantity number_quantity(const std::string& part, const std::string& key) {
  return [part, key](const Json& cell) -> std::optional<Measured> {
    const bool usable = result::is_ok(cell) || result::is_disturbed(cell);
    if (!usable || !cell.contains(part) || !cell[part].contains(key)) return std::nullopt;
    const Json& value = cell[part][key];
    if (!value.is_number()) return std::nullopt;
    const double number = value.get<double>();
    return Measured{number, number, number, ""};
  };
}

Scale time_scale(const std::vector<double>& seconds) {
  return choose(typical(seconds), {{1, "s"}, {1e3, "ms"}, {1e6, "µs"}});
}

Scale byte_scale(const std::vector<double>& bytes) {
  constexpr double kibi = 1024;
  return choose(
      typical(bytes),
      {{1 / (kibi * kibi * kibi), "GiB"}, {1 / (kibi * kibi), "MiB"}, {1 / kibi, "KiB"}, {1, "B"}});
}

const std::vector<std::pair<std::string, std::string>>& provenance_columns() {
  static const std::vector<std::pair<std::string, std::string>> columns{
      {"mechanism", "mechanism"},
      {"implementation", "implementation"},
      {"batch", "B"},
      {"heads", "H"},
      {"length", "T"},
      {"head_dim", "D"},
      {"latents", "latents per head"},
      {"pattern", "pattern"},
      {"pass", "pass"},
      {"scope", "scope"},
      {"dtype", "dtype"},
      {"device", "device"},
      {"id", "cell"}};
  return columns;
}

Json provenance_row(const Json& cell) {
  Json row = {{"mechanism", cell["mechanism"]},
              {"implementation", implementation_of(cell)},
              {"latents", text_at(cell, "latents_per_head")},
              {"device", cell.value("device", "cpu")},
              {"id", cell["id"]}};
  for (const char* size : {"batch", "heads", "length", "head_dim", "pattern"}) {
    row[size] = size_at(cell, size);
  }
  row["dtype"] = dtype_of(cell);
  for (const char* setting : {"pass", "scope"}) row[setting] = text_at(cell, setting);
  return row;
}

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

namespace {

/// "B·T=2048" where batch and length both vary and their product does not.
std::string constant_tokens(const result::Panel& panel) {
  std::set<double> batches;
  std::set<double> products;
  for (const result::Placed& placed : panel.cells) {
    const Json problem = placed.cell->value("problem", Json::object());
    if (!problem.contains("batch") || !problem.contains("length")) return "";
    batches.insert(problem["batch"].get<double>());
    products.insert(problem["batch"].get<double>() * problem["length"].get<double>());
  }
  if (batches.size() < 2 || products.size() != 1) return "";
  return "B·T=" + result::human_value(Json(static_cast<std::int64_t>(*products.begin())));
}

}  // namespace

std::string shared_settings(const result::Panel& panel) {
  static const std::vector<std::pair<std::string, std::string>> named{
      {"batch", "B="},
      {"heads", "H="},
      {"length", "T="},
      {"head_dim", "D="},
      {"latents", "latents per head "},
      {"pattern", ""},
      {"scope", "scope "},
      {"dtype", ""},
      {"device", ""}};
  std::string text = constant_tokens(panel);
  for (const auto& [field, prefix] : named) {
    std::set<std::string> values;
    for (const result::Placed& placed : panel.cells) {
      values.insert(provenance_row(*placed.cell)[field].get<std::string>());
    }
    values.erase(missing);  // softmax has no latents; those that do may still share theirs
    if (values.size() != 1) continue;
    if (!text.empty()) text += ", ";
    text += prefix;
    text += *values.begin();
  }
  return text;
}

std::string interval_words(const std::string& interval, std::size_t rounds, std::size_t disturbed) {
  const bool all = disturbed == rounds;  // then they are all that there is to show
  const std::size_t number = all ? rounds : rounds - disturbed;
  std::string count = std::to_string(number) + (number == 1 ? " round" : " rounds");
  if (disturbed > 0) {
    count += all ? ", disturbed" : ", " + std::to_string(disturbed) + " disturbed left out";
  }
  if (interval == "order") return "95 % over " + count;
  return (interval == "range" ? "range of " : "samples of ") + count;
}

}  // namespace attnbench::reports
