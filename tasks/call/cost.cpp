#include "tasks/call/cost.hpp"

#include <algorithm>

#include "tasks/call/model_cost.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::call {
namespace {

/// Multiply-adds, weights and tokens of the projections that the scope puts inside the clock.
struct Projections {
  double flops = 0;
  double weight_bytes = 0;
  double token_bytes = 0;   ///< x, and the memory where it is another tensor
  double output_bytes = 0;  ///< of the output projection
};

Projections projections_of(const Settings& settings, const Filling& filling) {
  Projections sum;
  if (settings.scope == Scope::mix) return sum;
  const Problem& problem = settings.problem;
  const auto width = static_cast<double>(problem.width());
  const auto bytes = static_cast<double>(bytes_of(problem.dtype));
  const auto tokens = [&](Source source) {
    const std::int64_t each = source == Source::key_tokens      ? problem.key_length
                              : source == Source::latent_stream ? filling.latents
                                                                : problem.length;
    return static_cast<double>(problem.batch * each);
  };
  for (const Role& role : filling.roles) {
    if (role.feed == Feed::slice) continue;
    const auto heads =
        static_cast<double>(role.source == Source::key_tokens ? problem.kv_heads : problem.heads);
    const double out = heads * static_cast<double>(role.width);
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

double output_bytes(const Settings& settings) {
  return static_cast<double>(output_elements(settings.problem) * bytes_of(settings.problem.dtype));
}

/// What must be read and written once by the forward pass of the scope.
double forward_bytes(const Cost& mix, const Settings& settings, const Projections& projections) {
  if (settings.scope == Scope::mix) return mix.minimal_bytes;
  const double out =
      settings.scope == Scope::layer ? projections.output_bytes : output_bytes(settings);
  return projections.token_bytes + projections.weight_bytes + out;
}

}  // namespace

Cost timed_cost(const Cost& mix, const Settings& settings, const Filling& filling) {
  const Projections projections = projections_of(settings, filling);
  const double forward = settings.pass == Pass::backward ? 0 : 1;
  const double backward = settings.has_backward() ? 1 : 0;
  Cost cost = mix;
  // A product's backward is two products of its size.
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

double predicted_peak_bytes(const Cost& mix, const Settings& settings, const Filling& filling) {
  const Projections projections = projections_of(settings, filling);
  const double outputs = output_bytes(settings);
  const double inputs = mix.minimal_bytes - outputs;
  if (settings.model) {
    return model_peak_bytes(inputs + outputs + mix.workspace_bytes, mix.saved_bytes,
                            projections.weight_bytes, settings);
  }
  const double around =
      projections.token_bytes + projections.weight_bytes + projections.output_bytes;
  double peak = inputs + outputs + around + mix.workspace_bytes;
  if (settings.has_backward()) {
    // The gradients of inputs and output, beside what was saved and a workspace of the same size.
    peak += inputs + outputs + around + mix.saved_bytes;
  }
  return peak;
}

void price(Forecast& forecast, const Registry& registry, const Cell& cell,
           const Settings& settings) {
  if (!forecast.support) return;
  if (settings.model && settings.problem.pattern == Pattern::cross) {
    forecast.support = Support::no(
        "the scope model has one sequence and so no cross attention: say causal or bidirectional");
    return;
  }
  Filling filling;
  if (settings.scope != Scope::mix) {
    const SingleThread alone;
    const auto mechanism = make_on_cpu(registry, cell, forecast);
    filling.roles = mechanism->roles();
    for (const Role& role : filling.roles) {
      if (role.source != Source::latent_stream) continue;
      filling.latents = mechanism->options.integer("latents_per_head");
    }
  }
  forecast.peak_bytes = predicted_peak_bytes(forecast.cost, settings, filling);
  forecast.cost = timed_cost(forecast.cost, settings, filling);
}

}  // namespace attnbench::tasks::call
