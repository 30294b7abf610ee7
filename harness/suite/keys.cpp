// Which keys a suite may use: those of its tasks and of its mechanisms.
#include <set>

#include "harness/suite/overrides.hpp"
#include "harness/suite/measure_block.hpp"
#include "harness/suite/pointer.hpp"
#include "core/text/spelling.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;
using Names = std::set<std::string>;

void append(const std::vector<OptionSpec>& specs, Names& names) {
  for (const OptionSpec& spec : specs) names.insert(spec.name);
}

std::string unknown_key(const std::string& key, const Names& known, const std::string& whose) {
  if (key == "latents" &&
      (known.count("latents_total") != 0 || known.count("latents_per_head") != 0)) {
    return "\"latents\" can be read two ways; expected latents_total, over all heads, or "
           "latents_per_head";
  }
  return "unknown key \"" + key + "\", neither a setting of the task nor an option of " + whose +
         "; " + suggestion(key, {known.begin(), known.end()});
}

class KeyCheck {
 public:
  KeyCheck(const ProfiledSuite& suite, Problems& problems) : suite_(suite), problems_(problems) {}

  /// `block` holds "set" and "zip".
  void block(const Ordered& holder, const std::string& pointer, const Names& known) {
    Names said;
    if (holder.contains("set")) {
      for (const auto& [key, ignored] : holder["set"].items()) {
        check(key, child_pointer(pointer + "/set", key), known, "a mechanism of this suite");
        said.insert(key);
      }
    }
    if (holder.contains("zip")) zips(holder["zip"], pointer + "/zip", known, said);
  }

  void entry(const Entry& entry, const Names& known) {
    Names said;
    for (const auto& [key, ignored] : entry.said.items()) {
      if (key == "use" || key == "zip" || key == "implementation" || key == "device") continue;
      check(key, child_pointer(entry.pointer, key), known, entry.mechanism->name);
      said.insert(key);
    }
    if (entry.said.contains("zip")) zips(entry.said["zip"], entry.pointer + "/zip", known, said);
  }

 private:
  void check(const std::string& key, const std::string& pointer, const Names& known,
             const std::string& whose) {
    if (known.count(key) == 0) {
      problems_.add(suite_.place(pointer), unknown_key(key, known, whose));
    }
  }

  void zips(const Ordered& value, const std::string& pointer, const Names& known, Names& said) {
    if (value.is_array()) {
      for (std::size_t i = 0; i < value.size(); ++i) {
        zips(value[i], child_pointer(pointer, std::to_string(i)), known, said);
      }
      return;
    }
    for (const auto& [key, ignored] : value.items()) {
      const std::string place = child_pointer(pointer, key);
      check(key, place, known, "a mechanism of this suite");
      if (!said.insert(key).second) {
        problems_.add(suite_.place(place),
                      "\"" + key + "\" is given values twice here; expected it in one place");
      }
    }
  }

  const ProfiledSuite& suite_;
  Problems& problems_;
};

}  // namespace

void check_keys(const ProfiledSuite& suite, const std::vector<Group>& groups,
                const std::vector<Entry>& entries, const std::vector<SetFlag>& flags,
                Problems& problems) {
  Names settings, options;
  for (const Group& group : groups) append(group.task->settings, settings);
  for (const Entry& entry : entries) append(entry.mechanism->options, options);
  Names all = settings;
  all.insert(options.begin(), options.end());

  KeyCheck check(suite, problems);
  check.block(suite.value(), "", all);
  for (const Group& group : groups) {
    Names known = options;
    append(group.task->settings, known);
    check.block(group.said, group.pointer, known);
  }
  for (const Entry& entry : entries) {
    Names known = settings;
    append(entry.mechanism->options, known);
    check.entry(entry, known);
  }
  all.insert({"task", "implementation", "device"});
  for (const auto& [key, ignored] : default_measure().items()) all.insert(key);
  for (const SetFlag& flag : flags) {
    if (all.count(flag.key) == 0) {
      problems.add(flag.place, unknown_key(flag.key, all, "a mechanism of this suite"));
    }
  }
}

}  // namespace attnbench::suite
