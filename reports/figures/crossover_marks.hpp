// The marks of a crossover map: what stands where, and what cannot be drawn.
#pragma once

#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

using Json = nlohmann::json;

struct CrossoverMarks {
  /// {x, size, y, low, high, kind: found | above | below | other, series, scope_title, group, said,
  /// against, …}, one per mark.
  Json rows = Json::array();
  std::vector<std::string> series;  ///< those drawn, in the panels' order
  std::vector<std::string> scopes;  ///< "scope mix", …
  std::vector<std::string> groups;  ///< "heads 4", …: what varies besides the scope
  std::set<double> sizes;
  std::vector<double> lengths;  ///< all that the axis of lengths has to hold
  std::string not_drawn;        ///< " Not drawn: …", of cells without a place; may be empty
};

CrossoverMarks crossover_marks(const std::vector<const result::Panel*>& panels);

}  // namespace attnbench::reports
