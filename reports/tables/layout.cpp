#include "reports/tables/layout.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/text/format.hpp"

namespace attnbench::reports {
namespace {

using Cells = std::vector<const result::CellRecord*>;
using Part = Values result::CellRecord::*;

std::string value_text(const std::optional<Json>& value) {
  return value ? value->dump() : std::string();
}

/// Keys of `part` (settings or options) over all cells, the ones people think in first.
std::vector<std::string> keys_of(const Cells& cells, Part part) {
  static const std::vector<std::string> first{"length",   "latents_total", "width",
                                              "head_dim", "batch",         "heads"};
  std::set<std::string> found;
  for (const result::CellRecord* cell : cells) {
    for (const auto& [key, value] : cell->*part) found.insert(key);
  }
  // An entry may list implementations, devices or stacks as it lists options.
  if (part == &result::CellRecord::options) {
    found.insert({"implementation", "device", stack});
  } else {
    found.erase(stack);
  }
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
  for (const result::CellRecord* cell : cells) {
    if (const auto value = value_of(*cell, key)) values[cell->label].insert(value->dump());
  }
  std::size_t most = 0;
  for (const auto& [label, distinct] : values) most = std::max(most, distinct.size());
  return most;
}

/// Cells by what they are alike in: the label, and the keys by which they have been split. Each
/// cell has its group's number, so that a key costs one pass however many went before.
class Groups {
 public:
  explicit Groups(const Cells& cells) : cells_(cells), of_(cells.size()) {
    regroup([](const result::CellRecord& cell) { return cell.label; });
  }

  void split(const std::string& key) {
    regroup([&](const result::CellRecord& cell) { return value_text(value_of(cell, key)); });
  }

  /// Whether `key` follows from the group: key_length from length, head_dim from width.
  bool determine(const std::string& key) const {
    std::vector<std::optional<std::string>> seen(count_);
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      std::string value = value_text(value_of(*cells_[i], key));
      std::optional<std::string>& first = seen[of_[i]];
      if (!first) {
        first = std::move(value);
      } else if (*first != value) {
        return false;
      }
    }
    return true;
  }

 private:
  template <class Text>
  void regroup(const Text& text) {
    std::map<std::pair<std::size_t, std::string>, std::size_t> numbers;
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      const auto place = std::pair(of_[i], text(*cells_[i]));
      of_[i] = numbers.emplace(place, numbers.size()).first->second;
    }
    count_ = numbers.size();
  }

  const Cells& cells_;
  std::vector<std::size_t> of_;
  std::size_t count_ = 0;
};

/// The declared axis if it varies; else what varies most; else the declared one, a single point.
/// Never one over which trainings are selected, nor one of several numbers at once (a window).
std::string widest_axis(const Cells& cells, std::string declared) {
  const auto all_are = [&](const std::string& key, const auto& is) {
    return std::all_of(cells.begin(), cells.end(), [&](const result::CellRecord* cell) {
      const auto value = value_of(*cell, key);
      return !value || is(*value);
    });
  };
  const bool simple = all_are(declared, [](const Json& value) { return !value.is_structured(); });
  if (declared == learning_rate || declared == model_seed || !simple) declared.clear();
  if (!declared.empty() && spread_of(cells, declared) > 1) return declared;
  std::string best;
  std::size_t most = 1;
  for (const Part part : {&result::CellRecord::settings, &result::CellRecord::options}) {
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
  for (const result::CellRecord* cell : cells) {
    const auto bytes = value_of(*cell, state_bytes);
    const bool has_bytes = bytes && bytes->get<double>() > 0;
    if ((result::is_ok(*cell) || result::is_disturbed(*cell)) && !has_bytes) return false;
    if (cell->settings.contains(axis)) return false;
    Values held = cell->settings;
    for (const char* key : {learning_rate, model_seed}) held.erase(key);
    alike[cell->label + Json(held).dump()].push_back(cell);
  }
  return std::any_of(alike.begin(), alike.end(), [&](const auto& one) {
    return spread_of(one.second, axis) < 2 && spread_of(one.second, state_bytes) > 1;
  });
}

std::string choose_axis(const Cells& cells, const std::string& declared) {
  const std::string axis = widest_axis(cells, declared);
  return only_states_compare(cells, axis) ? state_bytes : axis;
}

/// Keys of `part` that still vary once the groups and the ones chosen before are fixed. Splits the
/// groups by them.
std::vector<std::string> remaining(const Cells& cells, Part part, Groups& groups) {
  std::vector<std::string> found;
  for (const std::string& key : keys_of(cells, part)) {
    if (groups.determine(key)) continue;
    groups.split(key);
    found.push_back(key);
  }
  return found;
}

std::string series_of(const result::CellRecord& cell, const std::vector<std::string>& options) {
  std::string name = cell.label;
  for (const std::string& key : options) {
    name += label_part(key, value_of(cell, key).value_or(Json()));
  }
  return name;
}

void add_panels(std::vector<Panel>& all, const Cells& cells, const std::string& task_label,
                const std::string& declared_axis) {
  const std::string axis = choose_axis(cells, declared_axis);
  Groups groups(cells);
  groups.split(axis);
  const std::vector<std::string> facets = remaining(cells, &result::CellRecord::settings, groups);
  const std::vector<std::string> options = remaining(cells, &result::CellRecord::options, groups);
  std::map<std::string, std::size_t> place;
  for (const result::CellRecord* cell : cells) {
    Panel panel;
    for (const std::string& key : facets) {
      const auto value = value_of(*cell, key);
      panel.facet.emplace_back(key, value && *value != "" ? text::human_value(*value) : "none");
    }
    const auto [found, is_new] = place.emplace(panel.facet_text(), all.size());
    if (is_new) {
      panel.task = cell->task;
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

std::string stack_of(const result::CellRecord& cell) {
  const auto said = cell.settings.find(stack);
  if (said == cell.settings.end() || said->second == "self") return "";
  return said->second.get<std::string>();
}

bool is_exact(const result::CellRecord& cell) {
  return cell.mechanism == "softmax" && stack_of(cell).empty();
}

std::string label_part(const std::string& name, const Json& value) {
  return value.is_null() || value == "" ? "" : ", " + name + "=" + text::human_value(value);
}

std::string Panel::facet_text() const {
  std::string text;
  for (const auto& [key, value] : facet) {
    if (!text.empty()) text += ", ";
    text += key + "=" + value;
  }
  return text;
}

std::optional<Json> value_of(const result::CellRecord& cell, const std::string& key) {
  if (key == size_per_head) {
    for (const char* name : {"latents_per_head", "features", "bases", "projected_length"}) {
      if (auto value = value_of(cell, name)) return value;
    }
    return std::nullopt;
  }
  for (const Values* values : {&cell.settings, &cell.options, &cell.problem}) {
    if (const Json* const value = find_value(*values, key)) return std::make_optional(*value);
  }
  if (key == state_bytes) {
    if (const Json* const measured = find_value(cell.metrics, key)) {
      return measured->is_number() ? std::make_optional(*measured) : std::nullopt;
    }
    if (cell.cost && std::isfinite(cell.cost->state_bytes)) return cell.cost->state_bytes;
  }
  const std::string own = key == "implementation" ? cell.implementation
                          : key == "device"       ? cell.device
                                                  : std::string();
  return own.empty() ? std::nullopt : std::make_optional<Json>(own);
}

std::optional<Json> size_of(const result::CellRecord& cell, const std::string& key) {
  const Json* const size = find_value(cell.problem, key);
  return size == nullptr ? value_of(cell, key) : std::make_optional(*size);
}

std::vector<Panel> panels(const result::Result& result) {
  std::vector<std::string> order;
  std::map<std::string, Cells> by_task;
  for (const result::CellRecord& cell : result.cells) {
    Cells& cells = by_task[cell.task_name()];
    if (cells.empty()) order.push_back(cell.task_name());
    cells.push_back(&cell);
  }
  std::vector<Panel> all;
  for (const std::string& label : order) {
    const auto task = result.suite.tasks.find(label);
    add_panels(all, by_task[label], label,
               task == result.suite.tasks.end() ? std::string() : task->second.axis);
  }
  for (Panel& panel : all) {
    panel.ceilings = &result.ceilings_of(panel.cells.front().cell->device);
    panel.command = result.run.command;
  }
  return all;
}

std::vector<Json> axis_values(const Panel& panel) {
  std::vector<Json> values;
  for (const Placed& placed : panel.cells) {
    if (placed.x && std::find(values.begin(), values.end(), *placed.x) == values.end()) {
      values.push_back(*placed.x);
    }
  }
  std::stable_sort(values.begin(), values.end(), [](const Json& a, const Json& b) {
    if (a.is_number() && b.is_number()) return a.get<double>() < b.get<double>();
    return a.is_number() && !b.is_number();
  });
  return values;
}

}  // namespace attnbench::reports
