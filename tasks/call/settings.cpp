#include "tasks/call/settings.hpp"

#include "tasks/sizes.hpp"

namespace attnbench::tasks::call {
namespace {

Option word(const char* name, const char* fallback, const char* meaning,
            std::vector<std::string> choices) {
  return {name, OptionType::text, std::string(fallback), meaning, {}, {}, std::move(choices)};
}

}  // namespace

const char* to_string(Pass pass) {
  switch (pass) {
    case Pass::forward:
      return "forward";
    case Pass::backward:
      return "backward";
    case Pass::forward_backward:
      return "forward+backward";
  }
  return "";
}

std::vector<Option> declared_kinds() {
  return {
      word("pattern", "causal", "which keys a query sees", {"bidirectional", "causal", "cross"}),
      word("pass", "forward", "what is timed", {"forward", "backward", "forward+backward"}),
      word("scope", "mix",
           "mix: the mixing alone; projected: the input projections too; layer: the "
           "output projection as well",
           {"mix", "projected", "layer"})};
}

std::vector<Option> declared_settings() {
  std::vector<Option> settings = size_settings();
  settings.push_back(
      {"length", OptionType::integer, std::int64_t{1024}, "query tokens T", 1.0, {}, {}});
  settings.push_back({"key_length",
                      OptionType::integer,
                      std::int64_t{0},
                      "key tokens, for the pattern cross; 0 = length",
                      0.0,
                      {},
                      {}});
  for (Option& kind : declared_kinds()) settings.push_back(std::move(kind));
  return settings;
}

Settings settings_from(const Options& said) {
  Settings settings;
  settings.problem = problem_from(said);
  for (const Pass pass : {Pass::forward, Pass::backward, Pass::forward_backward}) {
    if (said.text("pass") == to_string(pass)) settings.pass = pass;
  }
  settings.problem.gradient = settings.has_backward();
  settings.scope = scope_from(said.text("scope"));
  settings.input_scale = said.number("input_scale");
  return settings;
}

}  // namespace attnbench::tasks::call
