// Catalogue: mechanisms, tasks, their options and settings, as the worker lists them.
//
// JSON, from the worker or from the cache:
//   mechanisms: [{name, title, citation, origin: "built in" | PLUGIN PATH, patterns: […],
//                 options: [option…], claims: {…},
//                 implementations: [{name, title, growth: {…}, differentiable}],
//                 aliases: [{name, implementation, options: {…}, title}],
//                 differs_from?: [departure…], roles?: [role…], roles_unknown?: REASON}]
//   tasks:      [{name, title, axis, figures: […], further_figures: […], settings: [option…],
//                 data_settings?: [option…], differs_from?: [departure…]}]
//   plugins:    [{path, status, reason}]
//   stamp:      {attnbench, abi, torch, compiler}
// departure: {what, how}, from published code
// role: {name, shape, fed_by, patterns}, see harness/worker/catalogue.hpp
// option: see core/option_json.hpp
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/option.hpp"

namespace attnbench::suite {

using Json = nlohmann::json;

struct MechanismSpec {
  std::string name;
  std::string title;
  std::vector<std::string> patterns;
  std::vector<std::string> implementations;
  std::vector<Option> options;
  Json differs_from;  ///< departures from published code; null where none is known
};

struct AliasSpec {
  std::string name;
  std::string mechanism;
  std::string implementation;
  Json options;
};

struct TaskSpec {
  std::string name;
  std::string title;
  std::string axis;
  std::vector<std::string> figures;          ///< drawn unless a suite says otherwise
  std::vector<std::string> further_figures;  ///< a suite may name these as well
  std::vector<Option> settings;
  std::vector<Option> data_settings;  ///< settings of its data; empty for a task without data
  Json differs_from;                  ///< as a mechanism's
};

struct Catalogue {
  std::map<std::string, MechanismSpec> mechanisms;
  std::map<std::string, AliasSpec> aliases;
  std::map<std::string, TaskSpec> tasks;
  Json document;  ///< the whole catalogue, for `list` and `describe`

  /// Throws std::runtime_error if `document` is not a catalogue.
  static Catalogue from_json(const Json& document);
};

}  // namespace attnbench::suite
