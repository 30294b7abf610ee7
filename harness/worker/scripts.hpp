// What stands in the JSON file beside a TorchScript module.
#pragma once

#include <string>

#include "attention/script/script.hpp"

namespace attnbench::worker {

/// Whether a plugin's path is that of a TorchScript module: it ends in .pt.
bool is_script(const std::string& path);

/// Of folder/mine.pt: the mechanism `mine`, what folder/mine.json says of it if it is there, and
/// folder/mine.reference.pt as its reference if that is there. All keys are optional:
///   {"title": TEXT, "citation": TEXT, "patterns": ["bidirectional" | "causal" | "cross", …],
///    "roles": {ARGUMENT: {"source": "query_tokens" | "key_tokens",
///                         "width": "head_dim" | "value_dim" | NUMBER}},
///    "options": {ARGUMENT: MEANING}, "claims": {CLAIM: BOOL, …},
///    "growth": {"time_in_length": NUMBER, …}}
/// A claim that is not made there is not made; nor is one about growth.
/// Throws PluginError naming the file, the key, and the nearest one that is known.
ScriptDescription describe_script(const std::string& path);

}  // namespace attnbench::worker
