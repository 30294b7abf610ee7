// Presets: published protocols by name, from suites/form/presets.json, which the program carries.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace attnbench::suite {

/// {NAME: {title, source, set}}
const nlohmann::ordered_json& presets();

std::vector<std::string> preset_names();

}  // namespace attnbench::suite
