#include "tasks/crossover/settings.hpp"

#include "tasks/settings.hpp"

namespace attnbench::tasks::crossover {
namespace {

constexpr const char* exact_mechanism = "softmax";

ResolvedCell with_mechanism(const ResolvedCell& cell, std::string mechanism,
                            std::string implementation,
                            std::map<std::string, OptionValue> options) {
  ResolvedCell other = cell;
  other.mechanism = std::move(mechanism);
  other.implementation = std::move(implementation);
  other.said = std::move(options);
  return other;
}

/// The cell with another mechanism: a name or alias, with or without an implementation, such as
/// "softmax", "flash", "softmax/chunked".
ResolvedCell named_exact(const Registry& registry, const ResolvedCell& cell,
                         const std::string& name) {
  const std::size_t slash = name.find('/');
  const Resolved found = registry.resolve(name.substr(0, slash));
  const std::string implementation =
      slash == std::string::npos ? found.implementation : name.substr(slash + 1);
  if (implementation != "auto") found.entry->implementation(implementation);
  return with_mechanism(cell, found.entry->name, implementation, found.options);
}

}  // namespace

std::vector<Option> declared_settings() {
  std::vector<Option> settings = size_settings();
  append(settings, call::declared_kinds());
  append(
      settings,
      {integer_setting("length_minimum", 64, "the shortest length that is tried"),
       integer_setting("length_maximum", 16384, "the longest length that is tried"),
       number_setting("resolution", 0.05,
                      "greatest width of a round's interval, as a share of the length", 0.001, 1),
       number_setting("round_seconds", 60, "time limit of a round's search"),
       text_setting("against", fastest_exact,
                    "fastest_exact (at each length the fastest of softmax's implementations), "
                    "or a name such as flash or softmax/composite")});
  return settings;
}

CrossoverSettings settings_from(const Registry& registry, const ResolvedCell& cell) {
  CrossoverSettings settings;
  settings.range = {cell.settings.integer("length_minimum"),
                    cell.settings.integer("length_maximum"), cell.settings.number("resolution")};
  if (settings.range.minimum >= settings.range.maximum) {
    throw UsageError("length_minimum " + std::to_string(settings.range.minimum) +
                     " is not less than length_maximum " + std::to_string(settings.range.maximum) +
                     ": a search needs lengths in between.");
  }
  settings.round_seconds = cell.settings.number("round_seconds");
  settings.mechanism = cell;
  const std::string& against = cell.settings.text("against");
  if (against != fastest_exact) {
    settings.exact.push_back(named_exact(registry, cell, against));
    return settings;
  }
  for (const Implementation& one : registry.entry(exact_mechanism).implementations) {
    settings.exact.push_back(with_mechanism(cell, exact_mechanism, one.name, {}));
  }
  return settings;
}

call::CallSettings call_at(const ResolvedCell& cell, std::int64_t length) {
  Options settings = cell.settings;
  settings.set("length", length);
  return call::settings_from(settings);
}

}  // namespace attnbench::tasks::crossover
