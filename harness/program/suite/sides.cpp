#include "harness/program/suite/sides.hpp"

#include <algorithm>
#include <set>
#include <string>

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

/// Whether a build has the mechanism and the implementation that an entry of a suite names.
bool knows(const Catalogue& catalogue, const std::string& label, const Ordered& entry) {
  const auto word = [&entry](const char* key, const std::string& usual) {
    const bool said = entry.is_object() && entry.contains(key) && entry[key].is_string();
    return said ? entry[key].get<std::string>() : usual;
  };
  const std::string use = word("use", label);
  const std::size_t slash = use.find('/');
  const auto found = catalogue.find(use.substr(0, slash));
  if (!found) return false;
  const std::string wanted =
      word("implementation", slash == std::string::npos ? "" : use.substr(slash + 1));
  const std::vector<std::string> names = found->mechanism->implementation_names();
  return wanted.empty() || wanted == "auto" ||
         std::find(names.begin(), names.end(), wanted) != names.end();
}

}  // namespace

Document with_mechanism(Document document, const std::string& use) {
  const auto drop = [](Ordered& holder) {
    holder.erase("mechanisms");
    if (!holder.contains("tasks")) return;
    for (auto& [label, task] : holder["tasks"].items()) {
      if (task.is_object()) task.erase("mechanisms");
    }
  };
  drop(document.value);
  if (document.value.contains("profiles")) {
    for (auto& [name, profile] : document.value["profiles"].items()) {
      if (profile.is_object()) drop(profile);
    }
  }
  document.value["mechanisms"] = Ordered::object();
  document.value["mechanisms"][use]["use"] = use;
  return document;
}

void drop_unknown(Document& document, const Catalogue& own, const Catalogue& other) {
  Ordered& mechanisms = document.value["mechanisms"];
  std::set<std::string> dropped;
  Ordered kept = mechanisms.is_array() ? Ordered::array() : Ordered::object();
  for (const auto& [key, entry] : mechanisms.items()) {
    const std::string label = mechanisms.is_array() ? entry.get<std::string>() : key;
    if (!knows(own, label, entry) && knows(other, label, entry)) {
      dropped.insert(label);
    } else if (mechanisms.is_array()) {
      kept.push_back(entry);
    } else {
      kept[key] = entry;
    }
  }
  if (dropped.empty() || kept.empty()) return;
  mechanisms = kept;
  if (!document.value.contains("tasks")) return;
  for (auto& [label, task] : document.value["tasks"].items()) {
    if (!task.is_object() || !task.contains("mechanisms")) continue;
    Ordered names = Ordered::array();
    for (const Ordered& name : task["mechanisms"]) {
      if (!dropped.contains(name.get<std::string>())) names.push_back(name);
    }
    task["mechanisms"] = names;
  }
}

}  // namespace attnbench::suite
