#include "core/schema/values_check.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <set>

namespace attnbench::result {
namespace {

using Json = nlohmann::json;

struct Kind {
  const char* words;
  bool (*fits)(const Json&);
};

const Kind text{"a string", [](const Json& value) { return value.is_string(); }};
const Kind number{"a number", [](const Json& value) { return value.is_number(); }};
const Kind truth{"true or false", [](const Json& value) { return value.is_boolean(); }};
const Kind object{"an object", [](const Json& value) { return value.is_object(); }};
const Kind list{"an array", [](const Json& value) { return value.is_array(); }};
/// One, an array or an object of them: seconds of each sample, bytes of each part.
const Kind numbers{"a number", [](const Json& value) {
                     return value.is_number() ||
                            (value.is_structured() &&
                             std::all_of(value.begin(), value.end(),
                                         [](const Json& one) { return one.is_number(); }));
                   }};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> known{
      {"id", text},         {"label", text},          {"task", text},
      {"task_label", text}, {"title", text},          {"axis", text},
      {"mechanism", text},  {"implementation", text}, {"implementation_reason", text},
      {"device", text},     {"status", text},         {"reason", text},
      {"reproduce", text},  {"primary", text},        {"verdict", text},
      {"against", text},    {"interval", text},       {"stop", text},
      {"stopped", text},    {"bound", text},          {"profile", text},
      {"hash", text},       {"state", text},          {"command", text},
      {"started_at", text}, {"finished_at", text},    {"pattern", text},
      {"dtype", text},      {"scope", text},          {"pass", text},
      {"segment", text},    {"chosen", object},       {"cost", object},
      {"problem", object},  {"efficiency", object},   {"device_memory", object},
      {"devices", object},  {"parameters", numbers},  {"spoilers", list},
      {"jobs", number},     {"batch", number},        {"heads", number},
      {"length", number},   {"low", number},          {"high", number},
      {"r2_exact", number}, {"r2_mechanism", number}, {"chance", number},
      {"guess", number},    {"stacked", number},      {"epochs", number},
      {"steps", number},    {"exponentials", number}, {"converged", truth}};
  return known;
}

bool ends_with(const std::string& word, const std::string& end) {
  return word.size() > end.size() && word.compare(word.size() - end.size(), end.size(), end) == 0;
}

const Kind* kind_of(const std::string& key) {
  const auto known = kinds().find(key);
  if (known != kinds().end()) return &known->second;
  for (const char* unit : {"_seconds", "_bytes", "_flops", "_per_second", "_hz"}) {
    if (ends_with(key, unit)) return &numbers;
  }
  return nullptr;
}

/// Of settings only what every task means alike is read.
const std::set<std::string>& shared_settings() {
  static const std::set<std::string> keys{"pattern", "dtype", "scope", "pass"};
  return keys;
}

std::optional<Misfit> misfit_of_settings(const Json& settings) {
  if (!settings.is_object()) return Misfit{"", "an object"};
  for (const auto& [key, value] : settings.items()) {
    if (shared_settings().count(key) != 0 && !value.is_string())
      return Misfit{"/" + key, "a string"};
  }
  return std::nullopt;
}

/// Objects whose keys somebody else chose: labels, devices, names of mechanisms.
bool has_chosen_keys(const std::string& key) {
  static const std::set<std::string> keys{"tasks",   "timing",   "ceilings",
                                          "devices", "verdicts", "differs_from"};
  return keys.count(key) != 0;
}

std::optional<Misfit> misfit_below(const Json& value, bool chosen_keys) {
  static const std::set<std::string> own_words{"options", "foreign", "detail", "check",
                                               "libraries"};
  std::optional<Misfit> found;
  std::size_t index = 0;
  for (auto item = value.begin(); value.is_structured() && item != value.end(); ++item, ++index) {
    const std::string key = value.is_object() ? item.key() : std::to_string(index);
    if (value.is_object() && !chosen_keys) {
      if (own_words.count(key) != 0) continue;
      const Kind* kind = kind_of(key);
      if (kind != nullptr && !kind->fits(*item)) return Misfit{"/" + key, kind->words};
      // Its keys are names of parts: the parameters of the "mechanism" are a count.
      if (kind != nullptr && kind->fits == numbers.fits) continue;
    }
    const bool settings = value.is_object() && !chosen_keys && key == "settings";
    const bool below_chosen = value.is_object() && !chosen_keys && has_chosen_keys(key);
    found = settings ? misfit_of_settings(*item) : misfit_below(*item, below_chosen);
    if (found) return Misfit{"/" + key + found->pointer, found->expected};
  }
  return std::nullopt;
}

}  // namespace

std::optional<Misfit> find_misfit(const Json& value) { return misfit_below(value, false); }

}  // namespace attnbench::result
