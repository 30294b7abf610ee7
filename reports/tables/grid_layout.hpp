// Where each text of a grid stands: series down, the axis across.
#pragma once

#include "reports/tables/grid.hpp"

namespace attnbench::result {

struct GridEntry {
  std::string series;
  const Json* x = nullptr;  ///< the axis' value; null where there is none
  std::string text;
};

/// The panel's series down and its axis across, with a column "any" for what has no place on it.
/// Along the bytes of states, which hardly any two mechanisms share, a row for each size instead.
Grid laid_out(const Panel& panel, const std::string& title, const std::vector<GridEntry>& entries);

}  // namespace attnbench::result
