// Results of checks: JSON sections {verdict: "ok" | "wrong", reason?, …}, as Work::check returns
// them. The reason is a sentence without a subject of its own, such as "it changed its input".
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "tasks/task.hpp"

namespace attnbench::tasks {

/// {verdict: wrong, reason, rows: 0}: wrong before any row was compared.
Json found_wrong(const std::string& reason);

/// Sets `verdict` to wrong, with the reason; keeps the rest of the section.
void mark_wrong(Json& section, const std::string& reason);

/// Whether the verdict is ok. The section must have one.
bool is_right(const Json& section);

/// Of two checks of one cell the wrong one, or the one with the greater share of its tolerance
/// (`error` over `tolerance`; the first where both are equal).
Json worse_of(Json a, Json b);

}  // namespace attnbench::tasks
