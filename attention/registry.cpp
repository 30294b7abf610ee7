#include "attention/registry.hpp"

#include <algorithm>

namespace attnbench {

/// Written by CMake from the folder attention/mechanisms.
void register_builtins(Registry& registry);

namespace {

bool well_formed(const std::string& name) {
  if (name.empty() || name[0] < 'a' || name[0] > 'z') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
  });
}

void require_well_formed(const char* what, const std::string& name) {
  if (well_formed(name) && name != "auto") return;
  throw PluginError(std::string(what) + " \"" + name +
                    "\" must be lower-case letters, digits and _, begin with a letter and not be "
                    "\"auto\"");
}

void require_complete(const std::string& mechanism, const Implementation& implementation) {
  require_well_formed("the implementation", implementation.name);
  if (implementation.mix && implementation.supports && implementation.cost) return;
  throw PluginError(mechanism + "/" + implementation.name +
                    " must have all of mix, supports and cost");
}

void require_complete(const Entry& entry) {
  require_well_formed("the mechanism", entry.name);
  if (!entry.supports || !entry.derive || !entry.make) {
    throw PluginError(entry.name + " must have all of supports, derive and make");
  }
  if (entry.implementations.empty() || entry.implementations[0].name != "composite") {
    throw PluginError("the first implementation of " + entry.name +
                      " must be composite, the one written in tensor operations");
  }
  for (const auto& implementation : entry.implementations) {
    require_complete(entry.name, implementation);
    if (entry.find_implementation(implementation.name) != &implementation) {
      throw PluginError(entry.name + " has two implementations named " + implementation.name);
    }
  }
}

/// Throws what the mechanism itself, however computed, cannot do.
void require_defined(const Entry& entry, const Options& options, const Problem& problem) {
  if (const auto support = entry.supports(options, problem); !support) {
    throw UnsupportedError(entry.name + ": " + support.reason);
  }
  const auto& patterns = entry.patterns;
  if (std::find(patterns.begin(), patterns.end(), problem.pattern) == patterns.end()) {
    throw UnsupportedError(entry.name + ": the pattern " + to_string(problem.pattern) +
                           " is not defined for it");
  }
}

Support supports(const Implementation& implementation, const Options& options,
                 const Problem& problem) {
  if (problem.gradient && !implementation.differentiable) {
    return Support::no("it has no backward pass");
  }
  return implementation.supports(options, problem);
}

std::string refusal(const Entry& entry, const Implementation& implementation,
                    const std::string& reason) {
  // Many reasons begin with the mechanism's name themselves.
  const std::string prefix = entry.name + ": ";
  const bool named = reason.rfind(prefix, 0) == 0;
  return entry.name + "/" + implementation.name + ": " +
         (named ? reason.substr(prefix.size()) : reason);
}

}  // namespace

Registry Registry::with_builtins() {
  Registry registry;
  register_builtins(registry);
  return registry;
}

void Registry::add(Entry entry, reference::Reference reference) {
  require_complete(entry);
  if (!reference) throw PluginError(entry.name + " must come with its reference in double");
  std::vector<std::string> names{entry.name};
  for (const auto& alias : entry.aliases) {
    require_well_formed("the alias", alias.name);
    if (alias.mechanism != entry.name) {
      throw PluginError("the alias " + alias.name + " must stand for " + entry.name + ", not for " +
                        alias.mechanism);
    }
    if (alias.implementation != "auto") entry.implementation(alias.implementation);
    names.push_back(alias.name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto taken = aliases();
    const bool alias_taken =
        std::any_of(taken.begin(), taken.end(), [&](const Alias& a) { return a.name == names[i]; });
    if (alias_taken || entries_.count(names[i]) != 0 ||
        std::count(names.begin(), names.end(), names[i]) > 1) {
      throw PluginError("the name " + names[i] + " is taken");
    }
  }
  const std::string name = entry.name;
  references_[name] = std::move(reference);
  entries_[name] = std::move(entry);
}

void Registry::add_implementation(const std::string& mechanism, Implementation implementation) {
  const auto found = entries_.find(mechanism);
  if (found == entries_.end()) {
    throw PluginError("there is no mechanism " + mechanism + " to add the implementation " +
                      implementation.name + " to");
  }
  require_complete(mechanism, implementation);
  if (found->second.find_implementation(implementation.name) != nullptr) {
    throw PluginError("the name " + mechanism + "/" + implementation.name + " is taken");
  }
  found->second.implementations.push_back(std::move(implementation));
}

Resolved Registry::resolve(const std::string& name_or_alias) const {
  const auto found = entries_.find(name_or_alias);
  if (found != entries_.end()) return {&found->second, "auto", {}};
  std::vector<std::string> known = mechanisms();
  for (const auto& alias : aliases()) {
    if (alias.name == name_or_alias) {
      return {&entries_.at(alias.mechanism), alias.implementation, alias.options};
    }
    known.push_back(alias.name);
  }
  std::string list;
  for (const auto& name : known) list += (list.empty() ? "" : ", ") + name;
  const std::string near = closest_word(name_or_alias, known);
  throw UsageError("unknown mechanism " + name_or_alias +
                   (near.empty() ? "" : "; did you mean " + near + "?") + " There are: " + list);
}

const Entry& Registry::entry(const std::string& mechanism) const {
  const auto found = entries_.find(mechanism);
  return found != entries_.end() ? found->second : *resolve(mechanism).entry;
}

const reference::Reference& Registry::reference(const std::string& mechanism) const {
  return references_.at(entry(mechanism).name);
}

std::vector<std::string> Registry::mechanisms() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) names.push_back(name);
  return names;
}

std::vector<Alias> Registry::aliases() const {
  std::vector<Alias> all;
  for (const auto& [name, entry] : entries_) {
    all.insert(all.end(), entry.aliases.begin(), entry.aliases.end());
  }
  std::sort(all.begin(), all.end(), [](const Alias& a, const Alias& b) { return a.name < b.name; });
  return all;
}

Choice Registry::choose(const Entry& entry, const std::string& word, const Options& options,
                        const Problem& problem) {
  if (word != "auto") {
    const Implementation& asked = entry.implementation(word);
    require_defined(entry, options, problem);
    if (const auto support = supports(asked, options, problem); !support) {
      throw UnsupportedError(refusal(entry, asked, support.reason));
    }
    return {&asked, "asked for"};
  }
  require_defined(entry, options, problem);
  const Implementation* best = nullptr;
  std::string reasons;
  std::size_t refused = 0;
  for (const auto& implementation : entry.implementations) {
    if (const auto support = supports(implementation, options, problem); !support) {
      ++refused;
      reasons += (reasons.empty() ? "" : "; ") + refusal(entry, implementation, support.reason);
    } else if (best == nullptr || implementation.rank > best->rank) {
      best = &implementation;
    }
  }
  if (best == nullptr) throw UnsupportedError(reasons);
  if (refused + 1 == entry.implementations.size()) {
    return {best, "auto: the only one that supports this problem"};
  }
  return {best, "auto: the fastest that supports this problem"};
}

}  // namespace attnbench
