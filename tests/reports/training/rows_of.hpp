// What a figure of trainings draws, by kind.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/figure.hpp"

namespace attnbench::test {

inline std::vector<nlohmann::json> rows_of(const reports::Figure& figure, const std::string& kind) {
  std::vector<nlohmann::json> rows;
  for (const auto& row : figure.spec["data"]["values"]) {
    if (row["kind"] == kind) rows.push_back(row);
  }
  return rows;
}

}  // namespace attnbench::test
