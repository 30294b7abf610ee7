#include "tasks/call/settings.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "tasks/continuation.hpp"
#include "tasks/forecast.hpp"
#include "tasks/ragged.hpp"
#include "tasks/settings.hpp"

namespace attnbench::tasks::call {
namespace {

using training::Positions;

constexpr Names<Pass, 3> passes = {{"forward", Pass::forward},
                                   {"backward", Pass::backward},
                                   {"forward+backward", Pass::forward_backward}};

/// A mechanism's roles, each with its heads, and the rows of its latent stream if it has one.
struct RoleInputs {
  std::vector<std::pair<Role, std::int64_t>> roles;
  std::int64_t latents = 0;
};

/// FLOPs, weights and tokens of the projections inside the clock.
struct Projections {
  double flops = 0;
  double weight_bytes = 0;
  double token_bytes = 0;   ///< x, and the key tokens where they are another tensor
  double output_bytes = 0;  ///< of the output projection
};

Projections projections_of(const CallSettings& settings, const RoleInputs& inputs) {
  Projections sum;
  if (settings.scope == Scope::mix) return sum;
  const Problem& problem = settings.problem;
  const auto width = static_cast<double>(problem.width());
  const auto bytes = static_cast<double>(bytes_of(problem.dtype));
  const auto tokens = [&](Source source) {
    const std::int64_t each = source == Source::key_tokens      ? problem.key_length
                              : source == Source::latent_stream ? inputs.latents
                                                                : problem.length;
    return static_cast<double>(problem.batch * each);
  };
  for (const auto& [role, heads] : inputs.roles) {
    if (role.feed == Feed::slice) continue;
    const auto out = static_cast<double>(heads * role.width);
    sum.flops += 2 * tokens(role.source) * width * out;
    sum.weight_bytes += width * out * bytes;
  }
  sum.token_bytes = (tokens(Source::query_tokens) + tokens(Source::latent_stream)) * width * bytes;
  if (problem.pattern == Pattern::cross) {
    sum.token_bytes += tokens(Source::key_tokens) * width * bytes;
  }
  if (settings.scope == Scope::layer) {
    const auto in = static_cast<double>(problem.heads * problem.value_dim);
    sum.flops += 2 * tokens(Source::query_tokens) * in * width;
    sum.weight_bytes += in * width * bytes;
    sum.output_bytes = tokens(Source::query_tokens) * width * bytes;
  }
  return sum;
}

struct ModelSizes {
  explicit ModelSizes(const CallSettings& settings)
      : layers(static_cast<double>(settings.model->layers)),
        tokens(static_cast<double>(settings.problem.batch * settings.problem.length)),
        width(static_cast<double>(settings.problem.width())),
        hidden(static_cast<double>(training::mlp_width(*settings.model, settings.problem))),
        vocabulary(static_cast<double>(settings.model->vocabulary)),
        bytes(static_cast<double>(bytes_of(settings.problem.dtype))),
        products(settings.model->mlp == training::Mlp::gated ? 3 : 2) {}

  double logits_bytes() const { return tokens * vocabulary * bytes; }

  double layers, tokens, width, hidden, vocabulary, bytes;
  double products;  ///< of the MLP; as many hidden tensors live there at once
};

double weights_bytes(double layer_weight_bytes, const CallSettings& settings) {
  const auto around =
      static_cast<double>(training::weights_around(*settings.model, settings.problem));
  const ModelSizes n(settings);
  return n.layers * layer_weight_bytes + around * n.bytes;
}

/// `layer`: of the timed pass of one attention layer; `weight_bytes`: of all its weights. Adds
/// MLPs, head and their backward passes, but not norms and activations, which cost a few operations
/// per number. The minimal bytes are those of weights and logits: tensors between blocks need not
/// leave the chip.
Cost model_cost(const Cost& layer, double weight_bytes, const CallSettings& settings) {
  const ModelSizes n(settings);
  const double forward = settings.pass == Pass::backward ? 0 : 1;
  const double backward = settings.has_backward() ? 1 : 0;
  const double once = 2 * n.tokens * n.width * (n.layers * n.products * n.hidden + n.vocabulary);
  const double around = once * (forward + 2 * backward);
  Cost cost = layer;
  cost.model_flops = n.layers * layer.model_flops + around;
  cost.executed_flops = n.layers * layer.executed_flops + around;
  cost.exponentials = n.layers * layer.exponentials;
  cost.state_bytes = n.layers * layer.state_bytes;
  cost.saved_bytes = n.layers * layer.saved_bytes;
  // Backward: the weights and the logits' gradient are read, the weights' gradients written.
  const double weights = weights_bytes(weight_bytes, settings);
  cost.minimal_bytes =
      (weights + n.logits_bytes()) * forward + (2 * weights + n.logits_bytes()) * backward;
  return cost;
}

/// `mix_bytes`: the prediction for one mix and its projected inputs; `mix_saved_bytes`: what it
/// keeps for its backward pass; `weight_bytes`: the weights of one layer.
double model_peak_bytes(double mix_bytes, double mix_saved_bytes, double weight_bytes,
                        const CallSettings& settings) {
  const ModelSizes n(settings);
  const double weights = weights_bytes(weight_bytes, settings);
  const double token_bytes = n.tokens * n.width * n.bytes;
  const double hidden_bytes = n.products * n.tokens * n.hidden * n.bytes;
  // Beside the mix: the stream, its norm, the merged heads, the projected output.
  // Beside the MLP: the stream before and after the mix, a norm, the MLP's output, the sum.
  const double forward = std::max({mix_bytes + 4 * token_bytes, hidden_bytes + 5 * token_bytes,
                                   n.logits_bytes() + 2 * token_bytes});
  if (!settings.has_backward()) return weights + forward;
  const double saved = n.layers * (mix_bytes + mix_saved_bytes + hidden_bytes + 6 * token_bytes);
  return 2 * weights + saved + forward + 2 * n.logits_bytes();
}

/// Whether the scope has what the positions are added to.
Support positions_support(const CallSettings& settings) {
  if (settings.positions == Positions::none || settings.model) return {};
  if (settings.positions != Positions::rotary) {
    return Support::no(
        "learned and sinusoidal positions are added to an embedding, which the scope model alone "
        "has: say scope model, or positions none or rotary");
  }
  if (settings.scope != Scope::mix) return {};
  return Support::no(
      "rotary positions come after projections, which the scope mix does not have: say scope "
      "projected, layer or model, or positions none");
}

double output_bytes(const CallSettings& settings) {
  return static_cast<double>(output_elements(settings.problem) * bytes_of(settings.problem.dtype));
}

/// The least bytes that the forward pass of the scope reads and writes.
double forward_bytes(const Cost& mix, const CallSettings& settings,
                     const Projections& projections) {
  if (settings.scope == Scope::mix) return mix.minimal_bytes;
  const double out =
      settings.scope == Scope::layer ? projections.output_bytes : output_bytes(settings);
  return projections.token_bytes + projections.weight_bytes + out;
}

Cost timed_cost(const Cost& mix, const CallSettings& settings, const RoleInputs& inputs) {
  const Projections projections = projections_of(settings, inputs);
  const double forward = settings.pass == Pass::backward ? 0 : 1;
  const double backward = settings.has_backward() ? 1 : 0;
  Cost cost = mix;
  // The backward pass of a product is two products of its size.
  const double projected = projections.flops * (forward + 2 * backward);
  const double mixes = forward + mix.backward_flops * backward;
  cost.model_flops = mix.model_flops * mixes + projected;
  cost.executed_flops = mix.executed_flops * mixes + projected;
  cost.exponentials = mix.exponentials * forward;
  const double once = forward_bytes(mix, settings, projections);
  const double out =
      settings.scope == Scope::layer ? projections.output_bytes : output_bytes(settings);
  // Backward: the inputs and the output's gradient are read, the inputs' gradients written.
  cost.minimal_bytes = once * forward + (2 * (once - out) + out) * backward;
  if (settings.model) return model_cost(cost, projections.weight_bytes, settings);
  return cost;
}

double predicted_peak_bytes(const Cost& mix, const CallSettings& settings,
                            const RoleInputs& inputs) {
  const Projections projections = projections_of(settings, inputs);
  const double outputs = output_bytes(settings);
  const double input_bytes = mix.minimal_bytes - outputs;
  if (settings.model) {
    return model_peak_bytes(input_bytes + outputs + mix.workspace_bytes, mix.saved_bytes,
                            projections.weight_bytes, settings);
  }
  const double around =
      projections.token_bytes + projections.weight_bytes + projections.output_bytes;
  double peak = input_bytes + outputs + around + mix.workspace_bytes;
  if (settings.has_backward()) {
    // The gradients of inputs and output, the saved tensors and a workspace of the same size.
    peak += input_bytes + outputs + around + mix.saved_bytes;
  }
  return peak;
}

/// Throws UsageError where a call that continues from a state is said to do what none does.
void require_continuable(const CallSettings& settings, const std::string& scope) {
  const auto refuse = [&](const std::string& why) {
    return UsageError("past " + std::to_string(settings.past) + ": " + why);
  };
  if (settings.problem.pattern != Pattern::causal) {
    throw refuse(std::string("only causal tokens continue from a state, not ") +
                 to_string(settings.problem.pattern) + ": say causal, or past 0");
  }
  if (settings.has_backward()) {
    throw refuse("a state has no gradient, and the pass is " +
                 std::string(to_string(settings.pass)) + ": say forward, or past 0");
  }
  if (scope != "mix") {
    throw refuse("the mix alone continues from a state, and the scope is " + scope +
                 ": say mix, or past 0; `decode` continues whole models");
  }
  if (!settings.lengths.empty()) {
    throw refuse(
        "sequences of several lengths after one past are not measured: say past or "
        "lengths");
  }
}

/// Turns the forecast of a mix of all tokens into that of those after the past.
void continue_from_past(TaskForecast& forecast, const Registry& registry, const ResolvedCell& cell,
                        const CallSettings& settings) {
  {
    const SingleThread alone;
    forecast.support = has_state(*make_on_cpu(registry, cell, forecast), forecast.problem);
  }
  if (!forecast.support) return;
  const Cost whole = forecast.cost;
  Problem past = forecast.problem;
  past.length = past.key_length = settings.past;
  const Implementation& implementation = chosen(registry, cell, forecast);
  forecast.unclocked_cost = implementation.cost(forecast.options, past);
  forecast.cost = block_cost(implementation, forecast.options, past, settings.problem.length);
  forecast.problem.length = settings.problem.length;
  // Inputs and outputs of all tokens, a saved state and a working one.
  forecast.peak_bytes = whole.minimal_bytes + 2 * whole.state_bytes + forecast.cost.workspace_bytes;
}

}  // namespace

const char* to_string(Pass pass) { return name_of(passes, pass); }

Problem CallSettings::whole_problem() const {
  Problem whole = problem;
  if (past > 0) whole.length = whole.key_length;
  return whole;
}

std::vector<Option> declared_kinds() {
  return {text_setting("pattern", "causal", "which keys a query sees",
                       {"bidirectional", "causal", "cross"}),
          text_setting("pass", "forward", "what is timed", all_names(passes)),
          text_setting("scope", "mix",
                       "mix: the mixing alone; projected: the input projections too; layer: the "
                       "output projection as well; model: a whole model around it",
                       {"mix", "projected", "layer", "model"}),
          integer_setting("layers", 2, "blocks, for the scope model"),
          stack_setting(),
          integer_setting("vocabulary", 256, "different tokens, for the scope model"),
          text_setting("positions", "none",
                       "rotary: queries and keys are rotated to their positions, inside the clock, "
                       "in any scope with projections; learned or sinusoidal: added to the "
                       "embedding, for the scope model",
                       {"none", "learned", "sinusoidal", "rotary"}),
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
  settings.push_back(integer_setting(
      "past", 0,
      "tokens of a causal sequence before these, read into a state outside the clock, from which "
      "the mix continues, as the next chunk of a prefill; 0 = a whole sequence, without a state",
      0));
  settings.push_back(lengths_setting());
  append(settings, declared_kinds());
  return settings;
}

CallSettings settings_from(const Options& said) {
  CallSettings settings;
  settings.problem = problem_from(said);
  settings.pass = value_named("pass", passes, said.text("pass"));
  settings.problem.gradient = settings.has_backward();
  const std::string& scope = said.text("scope");
  if (scope == "model") settings.model = training::model_options_from(said);
  settings.scope = settings.model ? Scope::layer : scope_from(scope);
  settings.positions = training::positions_from(said.text("positions"));
  settings.input_scale = said.number("input_scale");
  settings.lengths = lengths_from(said, settings.problem);
  if (said.has("past")) settings.past = said.integer("past");
  if (settings.past > 0) {
    require_continuable(settings, scope);
    settings.problem.key_length += settings.past;
  }
  return settings;
}

TaskForecast forecast_call(const Registry& registry, const ResolvedCell& cell,
                           const CallSettings& settings) {
  const auto alone = [&](const ResolvedCell& one) {
    TaskForecast forecast = forecast_mix(registry, one, settings.whole_problem());
    add_call_cost(forecast, registry, one, settings);
    return forecast;
  };
  const std::int64_t blocks = settings.model ? training::mechanism_blocks(*settings.model) : 1;
  return forecast_stack(registry, cell, blocks, alone);
}

void add_call_cost(TaskForecast& forecast, const Registry& registry, const ResolvedCell& cell,
                   const CallSettings& settings) {
  if (!forecast.support) return;
  if (settings.model && settings.problem.pattern == Pattern::cross) {
    forecast.support = Support::no(
        "the scope model has one sequence and so no cross attention: say causal or bidirectional");
    return;
  }
  forecast.support = positions_support(settings);
  if (!forecast.support) return;
  if (settings.past > 0) return continue_from_past(forecast, registry, cell, settings);
  RoleInputs inputs;
  if (settings.scope != Scope::mix) {
    const SingleThread alone;
    const auto mechanism = make_on_cpu(registry, cell, forecast);
    if (settings.positions == Positions::rotary) forecast.support = rotary_support(*mechanism);
    if (!forecast.support) return;
    for (const Role& role : mechanism->roles()) {
      inputs.roles.emplace_back(role, mechanism->shape_of(role)[1]);
    }
    inputs.latents = stream_tokens(*mechanism);
  }
  forecast.peak_bytes = predicted_peak_bytes(forecast.cost, settings, inputs);
  if (settings.lengths.empty()) {
    forecast.cost = timed_cost(forecast.cost, settings, inputs);
    return;
  }
  const Implementation& implementation = chosen(registry, cell, forecast);
  forecast.cost = ragged_cost(forecast.problem, settings.lengths, [&](const Problem& problem) {
    CallSettings some = settings;
    some.problem = problem;
    return timed_cost(implementation.cost(forecast.options, problem), some, inputs);
  });
}

}  // namespace attnbench::tasks::call
