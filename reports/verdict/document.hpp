// The verdict as JSON, for other programs.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reports/verdict/verdict.hpp"

namespace attnbench::reports::verdict {

/// {text, headline, sentence, rankings, tasks, exceptions}. `text` is what a terminal of 100
/// columns shows. A ranking has a row for each label, best first, as the table of the text; a task
/// has its `lines` {topic, text}, and the numbers that they are of: `fastest`, `crossings`,
/// `workspaces`, `states`, `accuracies`. Seconds, bytes and tokens; what is not known is left out.
nlohmann::json document_of(const Verdict& verdict);

}  // namespace attnbench::reports::verdict
