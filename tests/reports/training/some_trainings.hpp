// The trainings that most tests of their figures draw, and what a figure draws of them.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/figure.hpp"
#include "tests/reports/tables/training_cells.hpp"

namespace attnbench::test {

/// The rows of a figure of one kind.
inline std::vector<nlohmann::json> rows_of(const reports::Figure& figure, const std::string& kind) {
  std::vector<nlohmann::json> rows;
  for (const auto& row : figure.spec["data"]["values"]) {
    if (row["kind"] == kind) rows.push_back(row);
  }
  return rows;
}

/// Two learning rates and seeds of softmax, a window with a reach, and latte, of which one
/// diverged.
inline Json some_trainings() {
  Json window = training_cell("window", 0.003, 1, 0.4, 0.41);
  window["training"]["reach"] = 0.39;
  window["training"]["stacked"] = 1;
  window["training"]["reach_line"] = {{"keys", {1, 8, 16, 32, 64}},
                                      {"state_bytes", {1024, 8192, 16384, 32768, 65536}},
                                      {"reach", {0.0, 0.2, 0.39, 0.8, 1.0}}};
  return trainings({training_cell("softmax", 0.001, 1, 0.9, 0.91),
                    training_cell("softmax", 0.003, 1, 0.99, 0.98),
                    training_cell("softmax", 0.003, 2, 0.97, 0.94), window,
                    training_cell("latte", 0.003, 1, 0.7, 0.72), diverged_cell("latte", 0.01, 1)});
}

inline const std::vector<std::string> order{"softmax", "window", "latte"};

}  // namespace attnbench::test
