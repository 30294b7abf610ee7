// The page: one HTML file with everything in it, that opens offline, on a phone as on a desk.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "reports/figures/figure.hpp"

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

/// One result on the page.
struct Section {
  Json result;         ///< result.json's value
  Json verdicts;       ///< of `attnbench ab`, if it made the result; else null
  std::string source;  ///< its path, as the user named it
  std::vector<Figure> figures;
  std::vector<std::string>
      svg;  ///< a picture per figure, for readers without scripts; "" without one
};

/// `bundle` is the JavaScript that draws the figures; without it the pictures stand alone, and
/// without those the page says in `message` how to get them.
std::string page(const std::vector<Section>& sections, const std::string& bundle,
                 const std::string& message);

}  // namespace attnbench::reports
