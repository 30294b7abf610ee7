// Tables of a result for documents and spreadsheets.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::reports {

using Json = nlohmann::json;

/// Labels down, axis across, one table per panel and quantity; then what is not ok.
std::string markdown_tables(const Json& result);
/// The same as LaTeX tables for the booktabs package, to be \input.
std::string latex_tables(const Json& result);
/// Every cell and timing as one line, all numbers unrounded in the units of their columns.
std::string csv_table(const Json& result);

}  // namespace attnbench::reports
