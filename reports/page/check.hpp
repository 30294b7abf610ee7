// What `attnbench check` found, as a page to attach to a paper or a pull request.
#pragma once

#include <string>

#include "core/result/document.hpp"

namespace attnbench::reports {

/// `document`: {command, date, build, stamp, machine, mechanisms: [as in the catalogue], checks:
/// [protocol::CheckedRow], growth: [{mechanism, implementation, quantity, claimed, measured?,
/// tolerance, verdict, reason?}]}, `machine` with {devices: {WORD: card}} where the checks ran on
/// one. What is absent is left out. Throws SchemaError.
std::string check_markdown(const Json& document);

}  // namespace attnbench::reports
