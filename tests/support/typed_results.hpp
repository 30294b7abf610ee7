// Results and records that tests write as JSON, as what the program reads them as.
#pragma once

#include <deque>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "harness/run/folder/combine.hpp"
#include "reports/tables/layout.hpp"

namespace attnbench::test {

/// The result's panels, which refer to a result that is kept until the program ends.
inline std::vector<result::Panel> panels(const nlohmann::json& json) {
  static std::deque<result::Result> kept;
  return result::panels(kept.emplace_back(json.get<result::Result>()));
}

/// The record of a cell before its first round, with the parts of a forecast that records have.
inline result::CellRecord planned(const nlohmann::json& cell, const nlohmann::json& forecast) {
  nlohmann::json record = cell;
  const bool supported = forecast.value("supported", true);
  record["status"] = supported ? "skipped" : "unsupported";
  record["reason"] =
      supported ? "the run ended before this cell was measured" : forecast.value("reason", "");
  for (const char* part : {"problem", "cost", "growth", "options"}) {
    if (forecast.contains(part)) record[part] = forecast[part];
  }
  if (forecast.contains("implementation")) {
    record["chosen"] = {{"implementation", forecast["implementation"]},
                        {"reason", forecast.value("implementation_reason", "")}};
  }
  return record.get<result::CellRecord>();
}

inline std::vector<result::RoundRecord> rounds(const std::vector<nlohmann::json>& records) {
  std::vector<result::RoundRecord> all;
  for (const nlohmann::json& record : records) all.push_back(record.get<result::RoundRecord>());
  return all;
}

/// The record of the cell, as JSON.
inline nlohmann::json combined(const nlohmann::json& cell, const nlohmann::json& forecast,
                               const std::vector<nlohmann::json>& records,
                               const nlohmann::json& ceilings = nlohmann::json::object(),
                               double usual_calibration = 0) {
  const auto rates = ceilings.is_object() ? ceilings.get<result::Values>() : result::Values{};
  return result::combine(planned(cell, forecast), rounds(records), rates, usual_calibration);
}

}  // namespace attnbench::test
