#include "tasks/call/settings.hpp"

#include "tasks/settings.hpp"

namespace attnbench::tasks::call {
namespace {

constexpr Names<Pass, 3> passes = {{"forward", Pass::forward},
                                   {"backward", Pass::backward},
                                   {"forward+backward", Pass::forward_backward}};

}  // namespace

const char* to_string(Pass pass) { return name_of(passes, pass); }

std::vector<Option> declared_kinds() {
  return {text_setting("pattern", "causal", "which keys a query sees",
                       {"bidirectional", "causal", "cross"}),
          text_setting("pass", "forward", "what is timed", all_names(passes)),
          text_setting("scope", "mix",
                       "mix: the mixing alone; projected: the input projections too; layer: the "
                       "output projection as well; model: a whole model around it",
                       {"mix", "projected", "layer", "model"}),
          integer_setting("layers", 2, "blocks, for the scope model"),
          integer_setting("vocabulary", 256, "different tokens, for the scope model"),
          text_setting("mlp", "plain",
                       "for the scope model; plain: GELU between two products; gated: SiLU",
                       {"plain", "gated"}),
          integer_setting("mlp_width", 0,
                          "hidden numbers of the MLP, for the scope model; 0 = 4 * width", 0),
          text_setting("norm", "layer", "for the scope model; layer: LayerNorm; rms: RMSNorm",
                       {"layer", "rms"}),
          boolean_setting("tied_head", true,
                          "for the scope model: logits from the embedding's own weights")};
}

std::vector<Option> declared_settings() {
  std::vector<Option> settings = size_settings();
  settings.push_back(integer_setting("length", 1024, "query tokens T"));
  settings.push_back(
      integer_setting("key_length", 0, "key tokens, for the pattern cross; 0 = length", 0));
  append(settings, declared_kinds());
  return settings;
}

Settings settings_from(const Options& said) {
  Settings settings;
  settings.problem = problem_from(said);
  settings.pass = value_named("pass", passes, said.text("pass"));
  settings.problem.gradient = settings.has_backward();
  const std::string& scope = said.text("scope");
  if (scope == "model") settings.model = training::model_options_from(said);
  settings.scope = settings.model ? Scope::layer : scope_from(scope);
  settings.input_scale = said.number("input_scale");
  return settings;
}

}  // namespace attnbench::tasks::call
