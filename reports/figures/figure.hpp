// Figure: a panel of cells as a Vega-Lite specification with its numbers inlined.
#pragma once

#include <string>
#include <vector>

#include "reports/figures/palette.hpp"
#include "reports/figures/published.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::reports {

struct Figure {
  std::string name;      ///< of its files: "kernel_time_forward"
  std::string what;      ///< "time", "accuracy", …: what it is drawn of
  std::string title;     ///< "Time of one forward pass"
  std::string group;     ///< the panel it draws: "kernel, pass=forward"
  std::string subtitle;  ///< what all its points share: B, H, D, dtype, device, …
  std::string caption;   ///< how to read it, one sentence; may be empty
  Json spec;             ///< Vega-Lite 5, complete
};

}  // namespace attnbench::reports
