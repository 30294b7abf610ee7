// Where a cell stands, in words: what comparisons call it by.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "core/text/format.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::compare {

/// " length=1024 pass=forward": the axis' value and the panel's facet, each after a space.
inline std::string place_name(const result::Panel& panel, const result::Placed& placed) {
  std::string name;
  if (placed.x) name += " " + panel.axis + "=" + result::human_value(*placed.x);
  if (!panel.facet.empty()) name += " " + panel.facet_text();
  return name;
}

}  // namespace attnbench::compare
