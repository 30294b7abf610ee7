#include "reports/tables/layout.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "core/result/record.hpp"
#include "core/text/format.hpp"

namespace attnbench::result {
namespace {

using Cells = std::vector<const Json*>;

std::string label_of(const Json& cell) { return cell["label"].get<std::string>(); }

std::string text_of(const Json* value) { return value ? value->dump() : std::string(); }

/// Keys of `part` (settings or options) over all cells, the ones people think in first.
std::vector<std::string> keys_of(const Cells& cells, const char* part) {
  static const std::vector<std::string> first{"length",   "latents_total", "width",
                                              "head_dim", "batch",         "heads"};
  std::set<std::string> found;
  for (const Json* cell : cells) {
    for (const auto& [key, value] : (*cell)[part].items()) found.insert(key);
  }
  // An entry may list implementations or devices as it lists options.
  if (part == std::string("options")) found.insert({"implementation", "device"});
  for (const char* key : {learning_rate, model_seed}) found.erase(key);
  std::vector<std::string> keys;
  for (const std::string& key : first) {
    if (found.erase(key)) keys.push_back(key);
  }
  keys.insert(keys.end(), found.begin(), found.end());
  return keys;
}

/// The most values that `key` takes within one label.
std::size_t spread_of(const Cells& cells, const std::string& key) {
  std::map<std::string, std::set<std::string>> values;
  for (const Json* cell : cells) {
    if (const Json* value = value_of(*cell, key)) values[label_of(*cell)].insert(value->dump());
  }
  std::size_t most = 0;
  for (const auto& [label, distinct] : values) most = std::max(most, distinct.size());
  return most;
}

/// Whether `key` follows from the label and `known`: key_length from length, head_dim from width.
bool determined(const Cells& cells, const std::string& key, const std::vector<std::string>& known) {
  std::map<std::string, std::string> seen;
  for (const Json* cell : cells) {
    std::string place = label_of(*cell);
    for (const std::string& other : known) place += '\n' + text_of(value_of(*cell, other));
    const std::string value = text_of(value_of(*cell, key));
    if (seen.emplace(place, value).first->second != value) return false;
  }
  return true;
}

/// The declared axis if it varies; else what varies most; else the declared one, a single point.
/// Never one over which trainings are selected, nor one of several numbers at once (a window).
std::string widest_axis(const Cells& cells, std::string declared) {
  const auto all_are = [&](const std::string& key, const auto& is) {
    return std::all_of(cells.begin(), cells.end(), [&](const Json* cell) {
      const Json* value = value_of(*cell, key);
      return !value || is(*value);
    });
  };
  const bool simple = all_are(declared, [](const Json& value) { return !value.is_structured(); });
  if (declared == learning_rate || declared == model_seed || !simple) declared.clear();
  if (!declared.empty() && spread_of(cells, declared) > 1) return declared;
  std::string best;
  std::size_t most = 1;
  for (const char* part : {"settings", "options"}) {
    for (const std::string& key : keys_of(cells, part)) {
      const std::size_t spread = spread_of(cells, key);
      const bool numeric = all_are(key, [](const Json& value) { return value.is_number(); });
      if (numeric && spread > most) {
        most = spread;
        best = key;
      }
    }
  }
  return best.empty() ? declared : best;
}

/// Whether each mechanism has sizes of its own (windows here, latents there), so that `axis` says
/// nothing of some that vary, while the bytes of their states do. Settings are held: a larger batch
/// has a larger state, too, and a panel of its own.
bool only_states_compare(const Cells& cells, const std::string& axis) {
  std::map<std::string, Cells> alike;
  for (const Json* cell : cells) {
    const Json* const bytes = value_of(*cell, state_bytes);
    const bool has_bytes = bytes && bytes->get<double>() > 0;
    if ((is_ok(*cell) || is_disturbed(*cell)) && !has_bytes) return false;
    if ((*cell)["settings"].contains(axis)) return false;
    Json held = (*cell)["settings"];
    for (const char* key : {learning_rate, model_seed}) held.erase(key);
    alike[label_of(*cell) + held.dump()].push_back(cell);
  }
  return std::any_of(alike.begin(), alike.end(), [&](const auto& one) {
    return spread_of(one.second, axis) < 2 && spread_of(one.second, state_bytes) > 1;
  });
}

std::string choose_axis(const Cells& cells, const std::string& declared) {
  const std::string axis = widest_axis(cells, declared);
  return only_states_compare(cells, axis) ? state_bytes : axis;
}

/// Keys of `part` that still vary once label, axis and the ones chosen before are fixed.
std::vector<std::string> remaining(const Cells& cells, const char* part,
                                   std::vector<std::string> known) {
  const std::size_t before = known.size();
  for (const std::string& key : keys_of(cells, part)) {
    if (!determined(cells, key, known)) known.push_back(key);
  }
  return {known.begin() + static_cast<long>(before), known.end()};
}

std::string series_of(const Json& cell, const std::vector<std::string>& options) {
  std::string name = label_of(cell);
  for (const std::string& key : options) {
    if (const Json* value = value_of(cell, key)) name += ", " + key + "=" + human_value(*value);
  }
  return name;
}

void add_panels(std::vector<Panel>& all, const Cells& cells, const std::string& task_label,
                const std::string& declared_axis) {
  const std::string axis = choose_axis(cells, declared_axis);
  const std::vector<std::string> known{axis};
  const std::vector<std::string> facets = remaining(cells, "settings", known);
  std::vector<std::string> fixed = known;
  fixed.insert(fixed.end(), facets.begin(), facets.end());
  const std::vector<std::string> options = remaining(cells, "options", fixed);
  std::map<std::string, std::size_t> place;
  for (const Json* cell : cells) {
    Panel panel;
    for (const std::string& key : facets) {
      const Json* value = value_of(*cell, key);
      panel.facet.emplace_back(key, value ? human_value(*value) : "none");
    }
    const auto [found, is_new] = place.emplace(panel.facet_text(), all.size());
    if (is_new) {
      panel.task = (*cell)["task"].get<std::string>();
      panel.task_label = task_label;
      panel.axis = axis;
      all.push_back(std::move(panel));
    }
    Panel& home = all[found->second];
    const std::string series = series_of(*cell, options);
    if (std::find(home.series.begin(), home.series.end(), series) == home.series.end()) {
      home.series.push_back(series);
    }
    home.cells.push_back({cell, series, value_of(*cell, axis)});
  }
}

}  // namespace

std::string Panel::facet_text() const {
  std::string text;
  for (const auto& [key, value] : facet) {
    if (!text.empty()) text += ", ";
    text += key + "=" + value;
  }
  return text;
}

const Json* value_of(const Json& cell, const std::string& key) {
  if (key == size_per_head) {
    for (const char* name : {"latents_per_head", "features", "bases", "projected_length"}) {
      if (const Json* value = value_of(cell, name)) return value;
    }
    return nullptr;
  }
  for (const char* part : {"settings", "options", "problem"}) {
    const auto found = cell.find(part);
    if (found != cell.end() && found->is_object() && found->contains(key)) return &(*found)[key];
  }
  if (key == state_bytes) {
    for (const char* part : {"metrics", "cost"}) {
      const auto found = cell.find(part);
      if (found == cell.end() || !found->is_object() || !found->contains(key)) continue;
      return (*found)[key].is_number() ? &(*found)[key] : nullptr;
    }
  }
  const bool own = key == "implementation" || key == "device";
  return own && cell.contains(key) ? &cell[key] : nullptr;
}

std::vector<Panel> panels(const Json& result) {
  const Json& ours = result["attnbench"];
  std::vector<std::string> order;
  std::map<std::string, Cells> by_task;
  for (const Json& cell : ours["cells"]) {
    const std::string label = cell.value("task_label", cell["task"].get<std::string>());
    if (by_task[label].empty()) order.push_back(label);
    by_task[label].push_back(&cell);
  }
  const Json tasks = ours["suite"].value("tasks", Json::object());
  std::vector<Panel> all;
  for (const std::string& label : order) {
    const Json task = tasks.contains(label) ? tasks[label] : Json::object();
    add_panels(all, by_task[label], label, task.value("axis", std::string()));
  }
  for (Panel& panel : all) panel.ceilings = ours.contains("ceilings") ? &ours["ceilings"] : nullptr;
  return all;
}

std::vector<const Json*> axis_values(const Panel& panel) {
  std::vector<const Json*> values;
  for (const Placed& placed : panel.cells) {
    const auto same = [&](const Json* other) { return *other == *placed.x; };
    if (placed.x && std::none_of(values.begin(), values.end(), same)) values.push_back(placed.x);
  }
  std::stable_sort(values.begin(), values.end(), [](const Json* a, const Json* b) {
    if (a->is_number() && b->is_number()) return a->get<double>() < b->get<double>();
    return a->is_number() && !b->is_number();
  });
  return values;
}

}  // namespace attnbench::result
