// Examples as JSON Lines.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>

#include "tasks/training/data.hpp"

namespace attnbench::tasks::learning {

/// Writes train.jsonl, validation.jsonl and test.jsonl into `folder`, an example a line: {segment,
/// example, tokens, questions: [{position, label, distance, place}]}; tokens that share a position
/// are lists, `place` is there where a decoder is asked. The questions of train.jsonl are what is
/// learned, those of the others what is scored. Returns {files: [{file, examples}]}. Throws Error
/// where the disk refuses.
nlohmann::json dump(const DataSet& data, const std::filesystem::path& folder);

}  // namespace attnbench::tasks::learning
