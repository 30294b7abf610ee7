// Joins what the plan and the rounds say of one cell into its record.
#pragma once

#include <string>
#include <vector>

#include "core/cell.hpp"
#include "core/result/record.hpp"
#include "harness/measure/roofline.hpp"

namespace attnbench::run {

/// The reason of cells that a run ended before.
inline constexpr const char* not_reached = "the run ended before this cell was measured";

/// The record of a cell before its first round: as the suite's expansion and the worker's forecast
/// have it, unsupported or skipped.
result::CellRecord planned_record(const Cell& cell, const Forecast& forecast);

/// The record of a cell. `planned` as planned_record makes it; `rounds` its round records from the
/// journal, any status; `ceilings` those of the cell's device (may be empty); `usual_calibration`
/// as usual_calibration of the run's rounds, 0 = not known.
result::CellRecord combine(result::CellRecord planned, std::vector<result::RoundRecord> rounds,
                           const Values& ceilings, double usual_calibration = 0);

/// The work of one timed body. The record's cost must be known.
measure::BodyWork work_of(const result::CellRecord& record);

/// What is wrong with the cell that `combine` makes of one round alone, such as
/// "/attnbench/cells/0/metrics: expected an object, found nothing"; empty where nothing is.
std::string joined_fault(const result::CellRecord& planned, const result::RoundRecord& record);

}  // namespace attnbench::run
