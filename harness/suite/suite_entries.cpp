#include "harness/suite/suite_entries.hpp"

#include <algorithm>

#include "harness/suite/pointer.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

template <typename Map>
void append_names(const Map& map, std::vector<std::string>& names) {
  for (const auto& [name, ignored] : map) names.push_back(name);
}

std::string unknown(const std::string& kind, const std::string& word,
                    const std::vector<std::string>& known) {
  return "there is no " + kind + " \"" + word + "\"; " + suggestion(word, known);
}

class GroupReader {
 public:
  GroupReader(const Catalogue& catalogue, Problems& problems)
      : catalogue_(catalogue), problems_(problems) {}

  void add(const std::string& label, const std::string& task, const std::string& place,
           const std::string& pointer, const Ordered& said) {
    const auto found = catalogue_.tasks.find(task);
    if (found == catalogue_.tasks.end()) {
      std::vector<std::string> names;
      append_names(catalogue_.tasks, names);
      problems_.add(place, unknown("task", task, names));
      return;
    }
    groups.push_back({label, &found->second, pointer, said});
  }

  std::vector<Group> groups;

 private:
  const Catalogue& catalogue_;
  Problems& problems_;
};

void check_restriction(const ProfiledSuite& suite, const Group& group, Problems& problems) {
  std::vector<std::string> labels;
  const Ordered& mechanisms = suite.value()["mechanisms"];
  for (const auto& [key, entry] : mechanisms.items()) {
    labels.push_back(mechanisms.is_array() ? entry.get<std::string>() : key);
  }
  std::size_t index = 0;
  for (const Ordered& label : group.said.value("mechanisms", Ordered::array())) {
    const std::string word = label;
    if (std::find(labels.begin(), labels.end(), word) == labels.end()) {
      problems.add(suite.place(group.pointer + "/mechanisms/" + std::to_string(index)),
                   unknown("mechanism labelled", word, labels));
    }
    ++index;
  }
}

/// Looks up "latte", "flash" or "latte/scan" and fills `entry`; false where there is no such thing.
bool look_up(const Catalogue& catalogue, const std::string& use, const std::string& place,
             Entry& entry, Problems& problems) {
  const std::size_t slash = use.find('/');
  const std::string name = use.substr(0, slash);
  const auto alias = catalogue.aliases.find(name);
  if (alias != catalogue.aliases.end()) entry.alias = &alias->second;
  const auto mechanism =
      catalogue.mechanisms.find(entry.alias != nullptr ? entry.alias->mechanism : name);
  if (mechanism == catalogue.mechanisms.end()) {
    std::vector<std::string> names;
    append_names(catalogue.mechanisms, names);
    append_names(catalogue.aliases, names);
    problems.add(place, unknown("mechanism", name, names));
    return false;
  }
  entry.mechanism = &mechanism->second;
  entry.implementation = entry.alias != nullptr ? entry.alias->implementation : "auto";
  if (slash == std::string::npos) return true;
  const std::string wanted = use.substr(slash + 1);
  const auto& known = entry.mechanism->implementations;
  if (std::find(known.begin(), known.end(), wanted) == known.end()) {
    problems.add(place, unknown("implementation of " + mechanism->first, wanted, known));
    return false;
  }
  if (entry.alias != nullptr && wanted != entry.implementation) {
    problems.add(place, "\"" + name + "\" stands for " + mechanism->first + "/" +
                            entry.implementation + "; use " + mechanism->first + "/" + wanted);
    return false;
  }
  entry.implementation = wanted;
  return true;
}

}  // namespace

std::vector<Group> read_groups(const ProfiledSuite& suite, const Catalogue& catalogue,
                               const std::vector<SetFlag>& flags, Problems& problems) {
  GroupReader reader(catalogue, problems);
  const Ordered& value = suite.value();
  const bool several = value.contains("tasks");
  for (const SetFlag& flag : flags) {
    if (flag.key != "task") continue;
    if (several) {
      problems.add(flag.place, "this suite has tasks of its own; choose among them with --only");
    }
    reader.groups.clear();
    for (const Ordered& task : flag.values) {
      const std::string name = task.is_string() ? task.get<std::string>() : task.dump();
      reader.add(name, name, flag.place, "", Ordered::object());
    }
    return reader.groups;
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
    for (const auto& [label, said] : value["tasks"].items()) {
      const std::string pointer = child_pointer("/tasks", label);
      const bool named = said.contains("task");
      reader.add(label, named ? said["task"].get<std::string>() : label,
                 suite.place(named ? pointer + "/task" : pointer), pointer, said);
    }
  } else if (value.contains("task")) {
    const std::string task = value["task"];
    reader.add(task, task, suite.place("/task"), "", Ordered::object());
  }
  for (const Group& group : reader.groups) check_restriction(suite, group, problems);
  return reader.groups;
}

std::vector<Entry> read_entries(const ProfiledSuite& suite, const Catalogue& catalogue,
                                Problems& problems) {
  std::vector<Entry> entries;
  const Ordered& mechanisms = suite.value()["mechanisms"];
  for (const auto& [key, json] : mechanisms.items()) {
    Entry entry;
    entry.label = mechanisms.is_array() ? json.get<std::string>() : key;
    entry.pointer = child_pointer("/mechanisms", key);
    entry.said = json.is_object() ? json : Ordered::object();
    const bool named = entry.said.contains("use");
    const std::string use = named ? entry.said["use"].get<std::string>() : entry.label;
    const std::string place = suite.place(named ? entry.pointer + "/use" : entry.pointer);
    if (look_up(catalogue, use, place, entry, problems)) entries.push_back(entry);
  }
  return entries;
}

bool is_for(const Group& group, const Entry& entry) {
  const Ordered labels = group.said.value("mechanisms", Ordered::array());
  return labels.empty() ||
         std::find(labels.begin(), labels.end(), Ordered(entry.label)) != labels.end();
}

}  // namespace attnbench::suite
