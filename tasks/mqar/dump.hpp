// Examples as JSON Lines.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "tasks/mqar/data.hpp"

namespace attnbench::tasks::mqar {

/// Writes train.jsonl, validation.jsonl and test.jsonl into `folder`, an example a line: {segment,
/// example, tokens, questions: [{position, label, distance}]}; of `stacked`, tokens are pairs.
/// Returns {files: [{file, examples}]}. Throws Error where the disk refuses.
nlohmann::json dump(const Plan& plan, const std::filesystem::path& folder);

}  // namespace attnbench::tasks::mqar
