#include "tasks/call/settings.hpp"

#include "tasks/training/settings.hpp"
#include "tasks/sizes.hpp"

namespace attnbench::tasks::call {
namespace {

Option word(const char* name, const char* fallback, const char* meaning,
            std::vector<std::string> choices) {
  return {name, OptionType::text, std::string(fallback), meaning, {}, {}, std::move(choices)};
}

/// What scope `model` alone reads.
std::vector<Option> model_settings() {
  const auto count = [](const char* name, std::int64_t fallback, const char* meaning) {
    const double least = fallback == 0 ? 0 : 1;
    return Option{name, OptionType::integer, fallback, meaning, least, {}, {}};
  };
  return {count("layers", 2, "blocks, for the scope model"),
          count("vocabulary", 256, "different tokens, for the scope model"),
          word("mlp", "plain", "for the scope model; plain: GELU between two products; gated: SiLU",
               {"plain", "gated"}),
          count("mlp_width", 0, "hidden numbers of the MLP, for the scope model; 0 = 4 * width"),
          word("norm", "layer", "for the scope model; layer: LayerNorm; rms: RMSNorm",
               {"layer", "rms"}),
          {"tied_head",
           OptionType::boolean,
           true,
           "for the scope model: logits from the embedding's own weights",
           {},
           {},
           {}}};
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
  std::vector<Option> kinds = {
      word("pattern", "causal", "which keys a query sees", {"bidirectional", "causal", "cross"}),
      word("pass", "forward", "what is timed", {"forward", "backward", "forward+backward"}),
      word("scope", "mix",
           "mix: the mixing alone; projected: the input projections too; layer: the "
           "output projection as well; model: a whole one around it",
           {"mix", "projected", "layer", "model"})};
  for (Option& setting : model_settings()) kinds.push_back(std::move(setting));
  return kinds;
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
  const std::string& scope = said.text("scope");
  if (scope == "model") settings.model = learning::model_options_from(said);
  settings.scope = settings.model ? Scope::layer : scope_from(scope);
  settings.input_scale = said.number("input_scale");
  return settings;
}

}  // namespace attnbench::tasks::call
