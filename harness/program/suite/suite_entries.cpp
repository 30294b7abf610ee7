#include "harness/program/suite/suite_entries.hpp"

#include <algorithm>
#include <cctype>
#include <set>

#include "core/failure.hpp"
#include "core/process/python_word.hpp"
#include "core/protocol.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

namespace fs = std::filesystem;
using Ordered = nlohmann::ordered_json;

std::string unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& known) {
  return "there is no " + kind + " \"" + word + "\"; " + text::suggestion(word, known);
}

class TaskReader {
 public:
  TaskReader(const Catalogue& catalogue, Problems& problems)
      : catalogue_(catalogue), problems_(problems) {}

  void add(const std::string& label, const std::string& task, const std::string& place,
           const std::string& pointer, const Ordered& overrides) {
    const TaskSpec* const found = catalogue_.task(task);
    if (found == nullptr) {
      return problems_.add(place, unknown("task", task, catalogue_.task_names()));
    }
    tasks.push_back({label, found, pointer, overrides});
  }

  std::vector<TaskEntry> tasks;

 private:
  const Catalogue& catalogue_;
  Problems& problems_;
};

/// Refuses a task's list of mechanisms where it names a label that the suite does not have.
void check_restrictions(const ProfiledSuite& suite, const std::vector<TaskEntry>& tasks,
                        Problems& problems) {
  std::vector<std::string> labels;
  const Ordered& mechanisms = suite.value()["mechanisms"];
  for (const auto& [key, entry] : mechanisms.items()) {
    labels.push_back(mechanisms.is_array() ? entry.get<std::string>() : key);
  }
  const std::set<std::string> known(labels.begin(), labels.end());
  for (const TaskEntry& task : tasks) {
    std::size_t index = 0;
    for (const Ordered& label : task.overrides.value("mechanisms", Ordered::array())) {
      const std::string word = label;
      if (known.count(word) == 0) {
        problems.add(suite.place(task.pointer + "/mechanisms/" + std::to_string(index)),
                     problems.full() ? "" : unknown("mechanism labelled", word, labels));
      }
      ++index;
    }
  }
}

/// Looks up "latte", "flash" or "latte/scan" and fills `entry`; false where there is no such thing.
bool look_up(const Catalogue& catalogue, const std::string& use, const std::string& place,
             MechanismEntry& entry, Problems& problems) {
  const std::size_t slash = use.find('/');
  const std::string name = use.substr(0, slash);
  const auto found = catalogue.find(name);
  if (!found) {
    problems.add(place, unknown("mechanism", name, catalogue.names()));
    return false;
  }
  entry.mechanism = found->mechanism;
  entry.alias = found->alias;
  entry.implementation = found->implementation();
  if (slash == std::string::npos) return true;
  const std::string wanted = use.substr(slash + 1);
  const std::string& mechanism = entry.mechanism->name;
  const std::vector<std::string> known = entry.mechanism->implementation_names();
  if (std::find(known.begin(), known.end(), wanted) == known.end()) {
    problems.add(place, unknown("implementation of " + mechanism, wanted, known));
    return false;
  }
  if (entry.alias != nullptr && wanted != entry.implementation) {
    problems.add(place, "\"" + name + "\" stands for " + mechanism + "/" + entry.implementation +
                            "; use " + mechanism + "/" + wanted);
    return false;
  }
  entry.implementation = wanted;
  return true;
}

constexpr const char* python_forms = "expected python:FILE.py:NAME or python:PACKAGE.MODULE:NAME";

bool is_dotted_name(const std::string& text) {
  const auto fits = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  };
  return !text.empty() && text.front() != '.' && text.back() != '.' &&
         std::isdigit(static_cast<unsigned char>(text[0])) == 0 &&
         std::all_of(text.begin(), text.end(), fits);
}

/// FILE.py beside the suite, else in the working folder.
fs::path found_python_file(const std::string& word, const std::string& target,
                           const fs::path& folder) {
  std::error_code ignored;
  for (const fs::path& candidate : {folder / target, fs::path(target)}) {
    if (fs::is_regular_file(candidate, ignored)) {
      return fs::absolute(candidate, ignored).lexically_normal();
    }
  }
  throw UsageFailure(text::quotable(word) + ": there is no file " +
                     text::quotable((folder / target).string()));
}

/// The word as the worker loads it.
std::string resolved_python(const std::string& word, const fs::path& folder) {
  const std::size_t begin = word.find(':') + 1;
  const std::size_t colon = word.rfind(':');
  const std::string target = colon < begin ? "" : word.substr(begin, colon - begin);
  const std::string name = word.substr(colon + 1);
  if (target.empty() || !is_dotted_name(name)) {
    throw UsageFailure(text::quotable(word) + ": " + python_forms);
  }
  if (target.ends_with(".py")) {
    return "python:" + found_python_file(word, target, folder).string() + ":" + name;
  }
  if (!is_dotted_name(target)) {
    throw UsageFailure(text::quotable(word) + ": " + text::quotable(target) +
                       " is neither a file that ends in .py nor a module; " + python_forms);
  }
  return word;
}

constexpr const char* name_form =
    "a name is lower-case letters, digits and _, begins with a letter and is not auto";

bool fits_as_name(const std::string& name) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  };
  return !name.empty() && name != "auto" && name[0] >= 'a' && name[0] <= 'z' &&
         std::all_of(name.begin(), name.end(), fits);
}

/// The word in Python of `plugins` whose mechanism is called `name`; empty where there is none.
std::string holder_of(const std::string& name, const std::vector<std::string>& plugins) {
  for (const std::string& text : plugins) {
    if (process::is_python(text) && process::mechanism_of(text) == name)
      return PluginName(text).path;
  }
  return {};
}

/// A name for `word` that is neither built in nor another word's.
std::string free_name(const std::string& word, const std::vector<std::string>& plugins,
                      const IsBuiltin& is_builtin) {
  const auto is_free = [&](const std::string& one) {
    return !is_builtin(one) && holder_of(one, plugins).empty();
  };
  std::string name = process::mechanism_of(word);
  if (is_builtin(name)) name += "_py";
  const std::vector<std::string> longer = process::longer_names_of(word);
  for (std::size_t i = 0; !is_free(name) && i < longer.size(); ++i) {
    const std::string holder = holder_of(name, plugins);
    // Two objects of one file differ by no folder.
    if (!holder.empty() && process::home_of(holder) == process::home_of(word)) break;
    name = longer[i];
  }
  if (is_free(name)) return name;
  int number = 2;
  while (!is_free(name + "_" + std::to_string(number))) ++number;
  return name + "_" + std::to_string(number);
}

class ScriptResolver {
 public:
  ScriptResolver(const Document& document, std::vector<std::string>& plugins,
                 const IsBuiltin& is_builtin)
      : document_(document),
        folder_(fs::path(document.name).parent_path()),
        plugins_(plugins),
        is_builtin_(is_builtin) {}

  /// `pointer` is the word's place in the suite.
  std::string resolve(const std::string& word, const std::string& pointer) const {
    try {
      return resolve_script(word, folder_, plugins_, is_builtin_);
    } catch (const UsageFailure& failure) {
      throw UsageFailure(text::quotable(document_.place(pointer), 300) + failure.what());
    }
  }

  /// The member "mechanisms" of a suite or a profile, which is at `pointer`.
  void resolve_in(Ordered& holder, const std::string& pointer) const {
    if (!holder.is_object() || !holder.contains("mechanisms")) return;
    Ordered& mechanisms = holder["mechanisms"];
    if (mechanisms.is_array()) {
      for (std::size_t i = 0; i < mechanisms.size(); ++i) {
        Ordered& entry = mechanisms[i];
        if (!entry.is_string()) continue;
        entry = resolve(entry.get<std::string>(), pointer + "/mechanisms/" + std::to_string(i));
      }
    }
    if (!mechanisms.is_object()) return;
    for (auto member = mechanisms.begin(); member != mechanisms.end(); ++member) {
      Ordered& entry = member.value();
      if (!entry.is_object()) continue;
      const bool named = entry.contains("use") && entry["use"].is_string();
      const std::string use = named ? entry["use"].get<std::string>() : member.key();
      const std::string at = child_pointer(pointer + "/mechanisms", member.key());
      const std::string word = with_name(entry, use, at + "/as");
      const std::string name = resolve(word, named ? at + "/use" : at);
      if (name != use) entry["use"] = name;
    }
  }

 private:
  /// The word with the name that the entry's member "as" gives, which is taken out.
  std::string with_name(Ordered& entry, const std::string& use, const std::string& pointer) const {
    if (!entry.contains("as")) return use;
    const Ordered as = entry["as"];
    entry.erase("as");
    const std::string name = as.is_string() ? as.get<std::string>() : as.dump();
    if (fits_as_name(name) && process::is_python(use) && PluginName(use).as.empty()) {
      return name + "=" + use;
    }
    throw UsageFailure(text::quotable(document_.place(pointer), 300) +
                       "\"as\": " + text::quotable(as.dump()) + ": " +
                       (process::is_python(use) ? name_form
                                                : "names a mechanism in Python; expected \"use\": "
                                                  "\"python:FILE.py:NAME\" beside it"));
  }

  const Document& document_;
  fs::path folder_;
  std::vector<std::string>& plugins_;
  const IsBuiltin& is_builtin_;
};

}  // namespace

std::vector<TaskEntry> read_tasks(const ProfiledSuite& suite, const Catalogue& catalogue,
                                  const std::vector<SetFlag>& flags, Problems& problems) {
  TaskReader reader(catalogue, problems);
  const Ordered& value = suite.value();
  const bool several = value.contains("tasks");
  for (const SetFlag& flag : flags) {
    if (flag.key != "task") continue;
    if (several) {
      problems.add(flag.place, "this suite has tasks of its own; choose among them with --only");
    }
    reader.tasks.clear();
    for (const Ordered& task : flag.values) {
      const std::string name = task.is_string() ? task.get<std::string>() : task.dump();
      reader.add(name, name, flag.place, "", Ordered::object());
    }
    return reader.tasks;
  }
  if (several && value.contains("task")) {
    problems.add(suite.place("/tasks"), "stands beside \"task\"; expected one of the two");
  }
  if (!several && !value.contains("task")) {
    problems.add(
        suite.place(""),
        "\"task\" is missing; expected \"task\": \"kernel\" or another task, or \"tasks\"");
  }
  if (several) {
    for (const auto& [label, overrides] : value["tasks"].items()) {
      const std::string pointer = child_pointer("/tasks", label);
      const bool named = overrides.contains("task");
      reader.add(label, named ? overrides["task"].get<std::string>() : label,
                 suite.place(named ? pointer + "/task" : pointer), pointer, overrides);
    }
  } else if (value.contains("task")) {
    const std::string task = value["task"];
    reader.add(task, task, suite.place("/task"), "", Ordered::object());
  }
  check_restrictions(suite, reader.tasks, problems);
  return reader.tasks;
}

std::vector<MechanismEntry> read_mechanisms(const ProfiledSuite& suite, const Catalogue& catalogue,
                                            Problems& problems) {
  std::vector<MechanismEntry> entries;
  const Ordered& mechanisms = suite.value()["mechanisms"];
  for (const auto& [key, json] : mechanisms.items()) {
    MechanismEntry entry;
    entry.label = mechanisms.is_array() ? json.get<std::string>() : key;
    entry.pointer = child_pointer("/mechanisms", key);
    entry.overrides = json.is_object() ? json : Ordered::object();
    const bool named = entry.overrides.contains("use");
    const std::string use = named ? entry.overrides["use"].get<std::string>() : entry.label;
    const std::string place = suite.place(named ? entry.pointer + "/use" : entry.pointer);
    if (look_up(catalogue, use, place, entry, problems)) entries.push_back(entry);
  }
  return entries;
}

bool applies_to(const TaskEntry& task, const MechanismEntry& entry) {
  const auto labels = task.overrides.find("mechanisms");
  return labels == task.overrides.end() || labels->empty() ||
         std::any_of(labels->begin(), labels->end(), [&](const Ordered& label) {
           return label.get_ref<const std::string&>() == entry.label;
         });
}

void refuse_torchscript(const std::string& word) {
  if (!word.starts_with("torchscript:") && !word.ends_with(".pt")) return;
  throw UsageFailure(
      text::quotable(word) +
      ": TorchScript was removed, since PyTorch has deprecated it; name the class in "
      "Python instead: python:FILE.py:NAME (docs/python.md)");
}

std::string resolve_script(const std::string& word, const fs::path& folder,
                           std::vector<std::string>& plugins, const IsBuiltin& is_builtin) {
  if (!process::is_python(word)) {
    refuse_torchscript(word);
    if (word.find("=python:") == std::string::npos) return word;
    throw UsageFailure(text::quotable(word) + ": " + name_form);
  }
  const PluginName asked(word);
  const std::string script = resolved_python(asked.path, folder);
  for (const std::string& text : plugins) {
    if (PluginName(text).path != script) continue;
    if (asked.as.empty() || process::mechanism_of(text) == asked.as)
      return process::mechanism_of(text);
  }
  std::string name = asked.as;
  if (name.empty()) {
    name = free_name(script, plugins, is_builtin);
  } else if (!fits_as_name(name)) {
    throw UsageFailure(text::quotable(word) + ": " + name_form);
  } else if (const std::string holder = holder_of(name, plugins);
             !holder.empty() || is_builtin(name)) {
    throw UsageFailure(text::quotable(word) + ": the name " + name + " is taken by " +
                       (holder.empty() ? "what is built in" : text::quotable(holder)) +
                       "; choose another");
  }
  plugins.push_back(name + "=" + script);
  return name;
}

void resolve_scripts(Document& document, std::vector<std::string>& plugins,
                     const IsBuiltin& is_builtin) {
  const ScriptResolver resolver(document, plugins, is_builtin);
  resolver.resolve_in(document.value, "");
  if (!document.value.is_object() || !document.value.contains("profiles")) return;
  for (auto& [name, profile] : document.value["profiles"].items()) {
    resolver.resolve_in(profile, child_pointer("/profiles", name));
  }
}

}  // namespace attnbench::suite
