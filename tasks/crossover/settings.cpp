#include "tasks/crossover/settings.hpp"

#include "tasks/sizes.hpp"

namespace attnbench::tasks::crossover {
namespace {

constexpr const char* exact_mechanism = "softmax";

Option length(const char* name, std::int64_t fallback, const char* meaning) {
  return {name, OptionType::integer, fallback, meaning, 1.0, {}, {}};
}

Cell rival(const Cell& cell, std::string mechanism, std::string implementation,
           std::map<std::string, OptionValue> options) {
  Cell other = cell;
  other.mechanism = std::move(mechanism);
  other.implementation = std::move(implementation);
  other.said = std::move(options);
  return other;
}

/// "softmax", "flash", "softmax/chunked": a mechanism or alias, and an implementation where one is
/// meant.
Cell named_rival(const Registry& registry, const Cell& cell, const std::string& name) {
  const std::size_t slash = name.find('/');
  const Resolved found = registry.resolve(name.substr(0, slash));
  const std::string implementation =
      slash == std::string::npos ? found.implementation : name.substr(slash + 1);
  if (implementation != "auto") found.entry->implementation(implementation);
  return rival(cell, found.entry->name, implementation, found.options);
}

}  // namespace

std::vector<Option> declared_settings() {
  std::vector<Option> settings = size_settings();
  for (Option& kind : call::declared_kinds()) settings.push_back(std::move(kind));
  settings.push_back(length("length_minimum", 64, "the shortest length that is tried"));
  settings.push_back(length("length_maximum", 16384, "the longest length that is tried"));
  settings.push_back({"resolution",
                      OptionType::number,
                      0.05,
                      "how narrow a round's interval is to be, as a share of the length",
                      0.001,
                      1.0,
                      {}});
  settings.push_back({"round_seconds",
                      OptionType::number,
                      60.0,
                      "after which a round's search ends with what it knows",
                      0.0,
                      {},
                      {}});
  settings.push_back({"against",
                      OptionType::text,
                      std::string(fastest_exact),
                      "what is to be overtaken: fastest_exact (at each length the fastest of "
                      "softmax's implementations), or a name such as flash or softmax/composite",
                      {},
                      {},
                      {}});
  return settings;
}

Settings settings_from(const Registry& registry, const Cell& cell) {
  Settings settings;
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
    settings.exact.push_back(named_rival(registry, cell, against));
    return settings;
  }
  for (const Implementation& one : registry.entry(exact_mechanism).implementations) {
    settings.exact.push_back(rival(cell, exact_mechanism, one.name, {}));
  }
  return settings;
}

call::Settings call_at(const Cell& cell, std::int64_t length) {
  Options settings = cell.settings;
  settings.set("length", length);
  return call::settings_from(settings);
}

}  // namespace attnbench::tasks::crossover
