// Plugins as the worker takes them: each is tried in a child first, so that it costs only itself.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "attention/registry.hpp"

namespace attnbench::worker {

using Json = nlohmann::json;

/// Everything there is to measure, and where it came from.
struct Loaded {
  Registry registry;
  std::map<std::string, std::string>
      origins;                   ///< the plugin's path by mechanism; built in ones absent
  Json plugins = Json::array();  ///< [{path, status: ok | refused | crashed, reason}]
};

/// The built-in mechanisms and those of `paths`. A plugin that crashes, throws, clashes or does not
/// come back within `limit_seconds` is left out and said to be so.
Loaded load_all(const std::vector<std::string>& paths, double limit_seconds = 30);

}  // namespace attnbench::worker
