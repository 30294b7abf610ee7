// The parts of the page that are words and numbers: tables, statuses, ceilings, machine,
// provenance.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::reports {

using Json = nlohmann::json;

/// Title, source, machine, when, how many cells of which status; notes where the run did not end
/// well or the machine was known to spoil measurements.
std::string header_html(const Json& result);
/// Every panel's grids.
std::string tables_html(const Json& result);
/// Cells that are not ok: status, reason, the command that does the cell alone, the log's tail.
std::string statuses_html(const Json& result);
/// The command, the ceilings, the machine card and the provenance.
std::string facts_html(const Json& result);

/// "1.30 T FLOP/s" for a ceiling by the unit in its name.
std::string ceiling_text(const std::string& name, double value);

}  // namespace attnbench::reports
