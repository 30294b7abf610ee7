// Points: one row of a figure's data per cell, with everything a tooltip says of it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "reports/tables/layout.hpp"

namespace attnbench::reports {

using result::CellRecord;

/// A number with its bounds; without any of its own both are the number.
struct PlottedValue {
  double value = 0;
  double low = 0;
  double high = 0;
  std::string interval;  ///< "order", "range" or "samples"; empty without bounds
};

/// What a figure takes from a cell; nothing where the cell does not have it.
using Quantity = std::function<std::optional<PlottedValue>(const CellRecord& cell)>;

/// The time of a WHAT of the timing; the cell's primary where `what` is empty. Cells that are not
/// ok have none.
Quantity time_quantity(const std::string& what);
/// The least sample of disturbed cells alone, which figures mark and nothing is derived from.
Quantity disturbed_time_quantity(const std::string& what);
/// A number of bytes, such as workspace_bytes of memory, of cells that are ok or whose time was
/// disturbed.
Quantity number_quantity(Values CellRecord::*part, const std::string& key);

/// A factor and the unit it gives: bytes into MiB, seconds into ms.
struct Scale {
  double factor = 1;
  std::string unit;
};
/// The one that suits most of the values.
Scale time_scale(const std::vector<double>& seconds);
Scale byte_scale(const std::vector<double>& bytes);
/// All that there are, the greatest unit first.
const std::vector<Scale>& time_scales();
const std::vector<Scale>& byte_scales();

/// The encoding of tooltips: `own` (field, title) first, then the provenance.
Json tooltip(const std::vector<std::pair<std::string, std::string>>& own);

}  // namespace attnbench::reports
