#include "tasks/crossover/settings.hpp"

#include "tasks/settings.hpp"
#include "tasks/stack.hpp"

namespace attnbench::tasks::crossover {
namespace {

constexpr const char* exact_mechanism = "softmax";

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
    settings.exact.push_back(with_mechanism(registry, cell, against));
    return settings;
  }
  for (const Implementation& one : registry.entry(exact_mechanism).implementations) {
    settings.exact.push_back(
        with_mechanism(registry, cell, exact_mechanism + std::string("/") + one.name));
  }
  return settings;
}

call::CallSettings call_at(const ResolvedCell& cell, std::int64_t length) {
  Options settings = cell.settings;
  settings.set("length", length);
  return call::settings_from(settings);
}

}  // namespace attnbench::tasks::crossover
