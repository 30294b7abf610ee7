// Joins what the plan and the rounds say of one cell into its record.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// The record of a cell. `cell` as the suite's expansion makes it; `forecast` the worker's plan of
/// it; `rounds` its round records from the journal, any status; `ceilings` those of the cell's
/// device (may be empty); `usual_calibration` as usual_calibration of the run's rounds, 0 = not
/// known.
Json combine(const Json& cell, const Json& forecast, const std::vector<Json>& rounds,
             const Json& ceilings, double usual_calibration = 0);

/// What is wrong with `record`, or with the cell that `combine` makes of it alone, such as
/// "/attnbench/cells/0/training/curve: expected an array, found nothing"; empty where nothing is.
std::string joined_fault(const Json& cell, const Json& forecast, const Json& record);

}  // namespace attnbench::result
