#include "reports/training/rows.hpp"

#include <array>
#include <cstdio>

#include "core/text/format.hpp"
#include "reports/tables/selection.hpp"
#include "reports/figures/points.hpp"

namespace attnbench::reports {

bool any_of_kind(const Json& rows, const std::string& kind) {
  for (const Json& row : rows) {
    if (row["kind"] == kind) return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> told_of(const char* what) {
  return {{"series", "label"},
          {"said", what},
          {"rate", "learning rate"},
          {"seed", "seed"},
          {"ended", "training"}};
}

std::string share_words(double share) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.3f", share);
  return text.data();
}

double metric(const Json& cell, const char* name) {
  const Json& metrics = cell["metrics"];
  return metrics.contains(name) && metrics[name].is_number() ? metrics[name].get<double>() : 0;
}

Json row_of(const Json& cell, const std::string& series, const char* kind, const Json& x,
            double y) {
  Json row = provenance_row(cell);
  const auto text = [&](const char* key) {
    const Json* value = result::value_of(cell, key);
    return value ? result::human_value(*value) : std::string("–");
  };
  row.update(
      {{"kind", kind},
       {"series", series},
       {"x", x},
       {"y", y},
       {"said", share_words(y)},
       {"seed", text(result::model_seed)},
       {"rate", text(result::learning_rate)},
       {"ended", cell["training"].value("converged", false) ? "converged" : "still growing"}});
  return row;
}

Json predicted_row(const std::string& series, const std::string& id, const Json& x, double y,
                   const std::string& said) {
  return {{"kind", "predicted"}, {"series", series}, {"id", id}, {"x", x}, {"y", y},
          {"said", said}};
}

Json mean_row(const std::string& series, const Json& x, double y, const std::string& line) {
  return {{"kind", "mean"},
          {"series", series},
          {"x", x},
          {"y", y},
          {"id", line.empty() ? series : line}};
}

void add_joined(Json& rows, Json dot, const std::string& line) {
  Json mean = mean_row(dot["series"], dot["x"], dot["y"].get<double>(), line);
  rows.push_back(std::move(dot));
  rows.push_back(std::move(mean));
}

}  // namespace attnbench::reports
