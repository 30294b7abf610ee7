#include "core/catalogue.hpp"

#include <algorithm>

namespace attnbench {
namespace {

template <class T>
const T* named(const std::vector<T>& all, const std::string& name) {
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const T& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

template <class T>
void append_names(const std::vector<T>& all, std::vector<std::string>& names) {
  for (const T& one : all) names.push_back(one.name);
}

}  // namespace

ATTNBENCH_JSON_CODEC(ImplementationSpec) { JSON_AT(name, title, growth, differentiable); }

ATTNBENCH_JSON_CODEC(RoleSpec) { JSON_AT(name, shape, fed_by, patterns); }

ATTNBENCH_JSON_CODEC(MechanismSpec) {
  JSON_AT(name, title, citation, origin, patterns, options, claims, implementations, aliases,
          differs_from);
  JSON_MAYBE(formula, options_unknown, roles, roles_unknown);
}

ATTNBENCH_JSON_CODEC(TaskSpec) {
  JSON_AT(name, title, origin, axis, figures, further_figures, settings, data_settings,
          differs_from);
}

ATTNBENCH_JSON_CODEC(PluginSpec) {
  JSON_AT(path, status);
  JSON_MAYBE(reason);
}

ATTNBENCH_JSON_CODEC(Stamp) { JSON_AT(attnbench, abi, torch, compiler); }

ATTNBENCH_JSON_CODEC(Catalogue) {
  json.type("catalogue");
  JSON_AT(mechanisms, tasks, plugins, stamp);
}

std::vector<std::string> MechanismSpec::implementation_names() const {
  std::vector<std::string> names;
  append_names(implementations, names);
  return names;
}

std::optional<NamedMechanism> Catalogue::find(const std::string& name) const {
  for (const MechanismSpec& mechanism : mechanisms) {
    if (mechanism.name == name) return NamedMechanism{&mechanism, nullptr};
    if (const Alias* alias = named(mechanism.aliases, name))
      return NamedMechanism{&mechanism, alias};
  }
  return std::nullopt;
}

const TaskSpec* Catalogue::task(const std::string& name) const { return named(tasks, name); }

std::vector<std::string> Catalogue::names() const {
  std::vector<std::string> all;
  append_names(mechanisms, all);
  for (const MechanismSpec& mechanism : mechanisms) append_names(mechanism.aliases, all);
  return all;
}

std::vector<std::string> Catalogue::task_names() const {
  std::vector<std::string> all;
  append_names(tasks, all);
  return all;
}

}  // namespace attnbench
