#include "harness/program/suite/overrides.hpp"

#include <algorithm>
#include <optional>
#include <set>

#include "core/failure.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/values.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

Option word_spec(const std::string& name, std::vector<std::string> choices) {
  Option spec;
  spec.name = name;
  spec.type = OptionType::text;
  spec.choices = std::move(choices);
  return spec;
}

std::vector<std::string> implementation_words(const MechanismEntry& entry) {
  if (entry.alias != nullptr) return {entry.implementation};
  std::vector<std::string> words = entry.mechanism->implementation_names();
  words.push_back("auto");
  return words;
}

class Overrides {
 public:
  Overrides(const ProfiledSuite& suite, const TaskEntry& task, const MechanismEntry& entry,
            Problems& problems)
      : suite_(suite),
        task_(task),
        entry_(entry),
        problems_(problems),
        implementation_(word_spec("implementation", implementation_words(entry))),
        device_(word_spec("device", {})) {}

  /// The setting or option of that name; null where there is none. A setting hides an option.
  const Option* find(const std::string& key) const {
    if (key == "implementation") return &implementation_;
    if (key == "device") return &device_;
    for (const Option& setting : task_.spec->settings) {
      if (setting.name == key) return &setting;
    }
    for (const Option& option : entry_.mechanism->options) {
      if (option.name == key) return &option;
    }
    return nullptr;
  }

  void set(const Ordered& values, const std::string& pointer) {
    for (const auto& [key, value] : values.items()) {
      if (key == "use" || key == "zip") continue;
      set_key(key, value, child_pointer(pointer, key));
    }
  }

  /// Sets `key` to values from outside the suite's own blocks (a preset, an alias, --set); messages
  /// about them begin with `place`. Does nothing where there is no such key.
  void set_foreign(const std::string& key, const Ordered& values, const std::string& place) {
    const Option* spec = find(key);
    if (spec == nullptr) return;
    std::vector<Term> terms;
    for (const Ordered& value : values) append(terms, *spec, value, place);
    if (!terms.empty()) axes.set(key, terms);
  }

  /// Sets what there is of a shape's sizes. A preset's sizes that would change them are derived
  /// again.
  void set_shape(const ChosenShape& chosen) {
    for (const char* derived : {"width", "kv_heads", "value_dim", "key_dim", "key_length"}) {
      if (axes.has(derived)) axes.set(derived, {{0, chosen.place, true}});
    }
    for (const auto& [key, value] : chosen.shape->sizes.items()) {
      const Option* spec = find(key);
      if (spec == nullptr) continue;
      std::vector<Term> terms;
      for (const Ordered& one : value.is_array() ? value : Ordered::array({value})) {
        append(terms, *spec, one, chosen.place);
      }
      for (Term& term : terms) term.of_shape = true;
      if (!terms.empty()) axes.set(key, terms);
    }
  }

  void zip(const Ordered& value, const std::string& pointer) {
    if (!value.is_array()) return zip_columns(value, pointer);
    for (std::size_t i = 0; i < value.size(); ++i) {
      zip_columns(value[i], child_pointer(pointer, std::to_string(i)));
    }
  }

  Axes axes;

 private:
  void append(std::vector<Term>& terms, const Option& spec, const Ordered& value,
              const std::string& place) {
    std::string complaint;
    const std::optional<Json> typed = typed_value(spec, value, complaint);
    if (typed && spec.name == "device") complaint = device_complaint(typed->get<std::string>());
    if (!complaint.empty()) {
      problems_.add(place, complaint);
    } else if (typed) {
      terms.push_back({*typed, place});
    }
  }

  void set_key(const std::string& key, const Ordered& value, const std::string& pointer) {
    const Option* spec = find(key);
    if (spec == nullptr) return;
    std::vector<Term> terms;
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        append(terms, *spec, value[i], suite_.place(child_pointer(pointer, std::to_string(i))));
      }
    } else {
      append(terms, *spec, value, suite_.place(pointer));
    }
    if (!terms.empty()) axes.set(key, terms);
  }

  void zip_columns(const Ordered& columns, const std::string& pointer) {
    Axis axis;
    std::size_t length = 0;
    std::string first;
    for (const auto& [key, column] : columns.items()) {
      if (first.empty()) {
        first = key;
        length = column.size();
      } else if (column.size() != length) {
        problems_.add(suite_.place(child_pointer(pointer, key)),
                      "\"" + key + "\" has " + std::to_string(column.size()) + " values, \"" +
                          first + "\" has " + std::to_string(length) +
                          "; expected lists of equal length");
        return;
      }
    }
    axis.points.resize(length);
    for (const auto& [key, column] : columns.items()) {
      const Option* spec = find(key);
      if (spec == nullptr) continue;
      axis.keys.push_back(key);
      const std::string place = child_pointer(pointer, key);
      for (std::size_t i = 0; i < length; ++i) {
        append(axis.points[i], *spec, column[i],
               suite_.place(child_pointer(place, std::to_string(i))));
        if (axis.points[i].size() != axis.keys.size()) return;  // reported already
      }
    }
    if (!axis.keys.empty()) axes.zip(std::move(axis));
  }

  const ProfiledSuite& suite_;
  const TaskEntry& task_;
  const MechanismEntry& entry_;
  Problems& problems_;
  Option implementation_;
  Option device_;
};

/// The preset that `holder` names: its values for all tasks, then those for this one.
void apply_preset(Overrides& overrides, const ProfiledSuite& suite, const std::string& task,
                  const Ordered& holder, const std::string& pointer, Problems& problems) {
  if (!holder.contains("preset")) return;
  const std::string name = holder["preset"];
  const std::string place = suite.place(pointer + "/preset");
  if (!presets().contains(name)) {
    problems.add(place,
                 "there is no preset \"" + name + "\"; " + text::suggestion(name, preset_names()));
    return;
  }
  const Ordered& preset = presets()[name];
  const auto apply = [&](const Ordered& values) {
    for (const auto& [key, value] : values.items()) {
      overrides.set_foreign(key, value.is_array() ? value : Ordered::array({value}), place);
    }
  };
  apply(preset["set"]);
  if (preset.contains("tasks") && preset["tasks"].contains(task)) apply(preset["tasks"][task]);
}

void apply_block(Overrides& overrides, const Ordered& holder, const std::string& pointer) {
  if (holder.contains("set")) overrides.set(holder["set"], pointer + "/set");
  if (holder.contains("zip")) overrides.zip(holder["zip"], pointer + "/zip");
}

using Names = std::set<std::string>;

void append(const std::vector<Option>& specs, Names& names) {
  for (const Option& spec : specs) names.insert(spec.name);
}

std::string unknown_key(const std::string& key, const Names& known, const std::string& whose) {
  if (key == "latents" &&
      (known.count("latents_total") != 0 || known.count("latents_per_head") != 0)) {
    return "\"latents\" can be read two ways; expected latents_total, over all heads, or "
           "latents_per_head";
  }
  if (key == "shape") {
    return "a shape is no setting: \"shape\" stands beside \"set\", in the suite or in a task; on "
           "the "
           "command line it is --shape NAME";
  }
  return "unknown key \"" + key + "\", neither a setting of the task nor an option of " + whose +
         "; " + text::suggestion(key, {known.begin(), known.end()});
}

class KeyCheck {
 public:
  /// `open`: there is a mechanism whose options are not known, so that no key is known to be wrong.
  KeyCheck(const ProfiledSuite& suite, bool open, Problems& problems)
      : suite_(suite), open_(open), problems_(problems) {}

  /// `holder` may have "set" and "zip".
  void block(const Ordered& holder, const std::string& pointer, const Names& known) {
    Names given;
    if (holder.contains("set")) {
      for (const auto& [key, ignored] : holder["set"].items()) {
        check(key, child_pointer(pointer + "/set", key), known, "a mechanism of this suite");
        given.insert(key);
      }
    }
    if (holder.contains("zip")) zips(holder["zip"], pointer + "/zip", known, given);
  }

  void entry(const MechanismEntry& entry, const Names& known) {
    Names given;
    for (const auto& [key, ignored] : entry.overrides.items()) {
      if (key == "use" || key == "zip" || key == "implementation" || key == "device") continue;
      check(key, child_pointer(entry.pointer, key), known, entry.mechanism->name);
      given.insert(key);
    }
    if (entry.overrides.contains("zip"))
      zips(entry.overrides["zip"], entry.pointer + "/zip", known, given);
  }

 private:
  void check(const std::string& key, const std::string& pointer, const Names& known,
             const std::string& whose) {
    if (known.count(key) == 0 && (!open_ || key == "shape")) {
      problems_.add(suite_.place(pointer), unknown_key(key, known, whose));
    }
  }

  void zips(const Ordered& value, const std::string& pointer, const Names& known, Names& given) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        zips(value[i], child_pointer(pointer, std::to_string(i)), known, given);
      }
      return;
    }
    for (const auto& [key, ignored] : value.items()) {
      const std::string place = child_pointer(pointer, key);
      check(key, place, known, "a mechanism of this suite");
      if (!given.insert(key).second) {
        problems_.add(suite_.place(place),
                      "\"" + key + "\" is given values twice here; expected it in one place");
      }
    }
  }

  const ProfiledSuite& suite_;
  const bool open_;
  Problems& problems_;
};

}  // namespace

std::string device_complaint(const std::string& word) {
  const bool numbered = word.rfind("cuda:", 0) == 0 && word.size() > 5 && word.size() < 9 &&
                        word.find_first_not_of("0123456789", 5) == std::string::npos;
  if (word == "cpu" || word == "cuda" || numbered) return {};
  return "there is no device \"" + word + "\"; expected cpu, cuda or cuda:NUMBER";
}

Axes axes_of(const ProfiledSuite& suite, const TaskEntry& task, const MechanismEntry& entry,
             const ChosenShape& chosen, const std::vector<SetFlag>& flags, Problems& problems) {
  Overrides overrides(suite, task, entry, problems);
  const std::string& name = task.spec->name;
  apply_preset(overrides, suite, name, suite.value(), "", problems);
  apply_preset(overrides, suite, name, task.overrides, task.pointer, problems);
  if (chosen.shape != nullptr) overrides.set_shape(chosen);
  apply_block(overrides, suite.value(), "");
  apply_block(overrides, task.overrides, task.pointer);
  if (entry.alias != nullptr) {
    for (const auto& [key, value] : entry.alias->options) {
      overrides.set_foreign(key, Ordered::array({to_json(value)}), suite.place(entry.pointer));
    }
  }
  overrides.set(entry.overrides, entry.pointer);
  if (entry.overrides.contains("zip"))
    overrides.zip(entry.overrides["zip"], entry.pointer + "/zip");
  for (const SetFlag& flag : flags) overrides.set_foreign(flag.key, flag.values, flag.place);
  return overrides.axes;
}

void check_keys(const ProfiledSuite& suite, const std::vector<TaskEntry>& tasks,
                const std::vector<MechanismEntry>& entries, const std::vector<SetFlag>& flags,
                Problems& problems) {
  Names settings, options;
  for (const TaskEntry& task : tasks) append(task.spec->settings, settings);
  for (const MechanismEntry& entry : entries) append(entry.mechanism->options, options);
  Names all = settings;
  all.insert(options.begin(), options.end());

  const bool open = std::any_of(entries.begin(), entries.end(), [](const MechanismEntry& entry) {
    return entry.mechanism->options_unknown;
  });
  KeyCheck check(suite, open, problems);
  check.block(suite.value(), "", all);
  for (const TaskEntry& task : tasks) {
    Names known = options;
    append(task.spec->settings, known);
    check.block(task.overrides, task.pointer, known);
  }
  for (const MechanismEntry& entry : entries) {
    Names known = settings;
    append(entry.mechanism->options, known);
    check.entry(entry, known);
  }
  all.insert({"task", "implementation", "device"});
  for (const auto& [key, ignored] : default_measure().items()) all.insert(key);
  for (const SetFlag& flag : flags) {
    if (all.count(flag.key) == 0 && (!open || flag.key == "shape")) {
      problems.add(flag.place, unknown_key(flag.key, all, "a mechanism of this suite"));
    }
  }
}

OptionValue option_value(const MechanismSpec& mechanism, const SetFlag& flag, bool causal) {
  const auto option = std::find_if(mechanism.options.begin(), mechanism.options.end(),
                                   [&](const auto& each) { return each.name == flag.key; });
  if (option == mechanism.options.end()) {
    std::vector<std::string> known;
    for (const Option& each : mechanism.options) known.push_back(each.name);
    throw UsageFailure(flag.place + mechanism.name + " has no option \"" + flag.key + "\"; " +
                       text::suggestion(flag.key, known));
  }
  if (flag.values.size() != 1) {
    throw UsageFailure(flag.place + "expected one value: this is no sweep");
  }
  std::string complaint;
  const auto typed = typed_value(*option, flag.values.front(), complaint);
  if (!typed) throw UsageFailure(flag.place + "the value " + complaint);
  if (option->type == OptionType::window && typed->is_number()) return window_of(*typed, causal);
  if ((option->type == OptionType::window || option->type == OptionType::integer) &&
      typed->is_string()) {
    throw UsageFailure(flag.place + "expected a whole number: no size can be named here");
  }
  return value_from(*typed, flag.key);
}

}  // namespace attnbench::suite
