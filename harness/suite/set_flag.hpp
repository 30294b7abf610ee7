// --set NAME=VALUES of the command line.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace attnbench::suite {

/// One --set, read: `values` has at least one.
struct SetFlag {
  std::string key;
  nlohmann::ordered_json values;  ///< a list
  std::string place;              ///< "--set length=1..4: ", the start of messages about it
};

/// "length=1024", "length=1024,2048", "length=256..8192" (doubling), "length=1000..5000:1000"
/// (steps), "pattern=causal", "window={"left":3,"right":0}". Throws UsageFailure.
SetFlag parse_set_flag(const std::string& text);

}  // namespace attnbench::suite
