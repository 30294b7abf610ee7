#include "harness/suite/overrides.hpp"

#include <algorithm>
#include <optional>

#include "harness/suite/pointer.hpp"
#include "harness/suite/presets.hpp"
#include "harness/suite/values.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

OptionSpec word_spec(const std::string& name, std::vector<std::string> choices) {
  OptionSpec spec;
  spec.name = name;
  spec.type = "text";
  spec.choices = std::move(choices);
  return spec;
}

std::vector<std::string> implementation_words(const Entry& entry) {
  if (entry.alias != nullptr) return {entry.implementation};
  std::vector<std::string> words = entry.mechanism->implementations;
  words.push_back("auto");
  return words;
}

class Layering {
 public:
  Layering(const ProfiledSuite& suite, const Group& group, const Entry& entry, Problems& problems)
      : suite_(suite),
        group_(group),
        entry_(entry),
        problems_(problems),
        implementation_(word_spec("implementation", implementation_words(entry))),
        device_(word_spec("device", {})) {}

  /// A setting, an option, or nothing where this cell has no use for the key. A name that is both
  /// is the task's.
  const OptionSpec* find(const std::string& key) const {
    if (key == "implementation") return &implementation_;
    if (key == "device") return &device_;
    for (const OptionSpec& setting : group_.task->settings) {
      if (setting.name == key) return &setting;
    }
    for (const OptionSpec& option : entry_.mechanism->options) {
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

  /// For values that are not the suite's own: all are placed at `place`.
  void set_foreign(const std::string& key, const Ordered& values, const std::string& place) {
    const OptionSpec* spec = find(key);
    if (spec == nullptr) return;
    std::vector<Term> terms;
    for (const Ordered& value : values) append(terms, *spec, value, place);
    if (!terms.empty()) axes.set(key, terms);
  }

  void zip(const Ordered& value, const std::string& pointer) {
    if (!value.is_array()) return zip_columns(value, pointer);
    for (std::size_t i = 0; i < value.size(); ++i) {
      zip_columns(value[i], child_pointer(pointer, std::to_string(i)));
    }
  }

  Axes axes;

 private:
  void append(std::vector<Term>& terms, const OptionSpec& spec, const Ordered& value,
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
    const OptionSpec* spec = find(key);
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
      const OptionSpec* spec = find(key);
      if (spec == nullptr) continue;
      axis.keys.push_back(key);
      const std::string place = child_pointer(pointer, key);
      for (std::size_t i = 0; i < length; ++i) {
        append(axis.points[i], *spec, column[i],
               suite_.place(child_pointer(place, std::to_string(i))));
        if (axis.points[i].size() != axis.keys.size()) return;  // a misfit, already filed
      }
    }
    if (!axis.keys.empty()) axes.zip(std::move(axis));
  }

  const ProfiledSuite& suite_;
  const Group& group_;
  const Entry& entry_;
  Problems& problems_;
  OptionSpec implementation_;
  OptionSpec device_;
};

void lay_preset(Layering& layering, const ProfiledSuite& suite, const Ordered& holder,
                const std::string& pointer, Problems& problems) {
  if (!holder.contains("preset")) return;
  const std::string name = holder["preset"];
  const std::string place = suite.place(pointer + "/preset");
  if (!presets().contains(name)) {
    problems.add(place, "there is no preset \"" + name + "\"; " + suggestion(name, preset_names()));
    return;
  }
  for (const auto& [key, value] : presets()[name]["set"].items()) {
    layering.set_foreign(key, value.is_array() ? value : Ordered::array({value}), place);
  }
}

void lay_block(Layering& layering, const Ordered& holder, const std::string& pointer) {
  if (holder.contains("set")) layering.set(holder["set"], pointer + "/set");
  if (holder.contains("zip")) layering.zip(holder["zip"], pointer + "/zip");
}

}  // namespace

std::string device_complaint(const std::string& word) {
  const bool numbered = word.rfind("cuda:", 0) == 0 && word.size() > 5 && word.size() < 9 &&
                        word.find_first_not_of("0123456789", 5) == std::string::npos;
  if (word == "cpu" || word == "cuda" || numbered) return {};
  return "there is no device \"" + word + "\"; expected cpu, cuda or cuda:NUMBER";
}

Axes lay_out(const ProfiledSuite& suite, const Group& group, const Entry& entry,
             const std::vector<SetFlag>& flags, Problems& problems) {
  Layering layering(suite, group, entry, problems);
  lay_preset(layering, suite, suite.value(), "", problems);
  lay_preset(layering, suite, group.said, group.pointer, problems);
  lay_block(layering, suite.value(), "");
  lay_block(layering, group.said, group.pointer);
  if (entry.alias != nullptr) {
    for (const auto& [key, value] : entry.alias->options.items()) {
      layering.set_foreign(key, Ordered::array({Ordered(value)}), suite.place(entry.pointer));
    }
  }
  layering.set(entry.said, entry.pointer);
  if (entry.said.contains("zip")) layering.zip(entry.said["zip"], entry.pointer + "/zip");
  for (const SetFlag& flag : flags) layering.set_foreign(flag.key, flag.values, flag.place);
  return layering.axes;
}

}  // namespace attnbench::suite
