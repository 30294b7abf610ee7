// Settings and forecast of the scope `model`.
#include "attention/layer.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/decode/model_decode.hpp"
#include "tasks/forecast.hpp"
#include "tasks/training/model_options.hpp"

namespace attnbench::tasks::decode {
namespace {

using training::ModelOptions;

/// Weights of the projections around one mix.
double projection_weights(const Mechanism& mechanism) {
  const Problem& problem = mechanism.problem;
  auto weights = static_cast<double>(problem.width() * problem.heads * problem.value_dim);
  for (const Role& role : mechanism.roles()) {
    if (role.feed == Feed::slice || role.source == Source::latent_stream) continue;
    const std::int64_t heads = mechanism.shape_of(role)[1];
    weights += static_cast<double>(problem.width() * heads * role.width);
  }
  return weights;
}

}  // namespace

bool decodes_model(const ResolvedCell& cell) { return cell.settings.text("scope") == "model"; }

std::vector<Option> model_decode_settings() {
  std::vector<Option> wanted;
  for (Option& one : call::declared_kinds()) {
    for (const char* name :
         {"layers", "stack", "vocabulary", "mlp", "mlp_width", "norm", "tied_head"}) {
      if (one.name == name) wanted.push_back(one);
    }
  }
  return wanted;
}

TaskForecast forecast_model_decode(const Registry& registry, const ResolvedCell& cell,
                                   TaskForecast mix) {
  const ModelOptions options = training::model_options_from(cell.settings);
  Problem whole = mix.problem;
  whole.length = whole.key_length = mix.problem.length + cell.settings.integer("steps");
  training::require_consistent(options, whole);
  double projections = 0;
  {
    const SingleThread alone;
    const auto mechanism = make_on_cpu(registry, cell, mix);
    if (options.positions == training::Positions::rotary) mix.support = rotary_support(*mechanism);
    if (!mix.support) return mix;
    projections = projection_weights(*mechanism);
  }
  const auto layers = static_cast<double>(options.layers);
  const auto batch = static_cast<double>(mix.problem.batch);
  const auto bytes = static_cast<double>(bytes_of(mix.problem.dtype));
  const auto width = static_cast<double>(whole.width());
  const auto vocabulary = static_cast<double>(options.vocabulary);
  const double products = options.mlp == training::Mlp::gated ? 3 : 2;
  const auto hidden = static_cast<double>(training::mlp_width(options, whole));
  const double weights =
      layers * projections + static_cast<double>(training::weights_around(options, whole));
  const double multiplied = layers * (projections + products * width * hidden) + width * vocabulary;
  const double context = batch * static_cast<double>(mix.problem.length);
  // The caller's costs are those of one mix.
  const auto add_model = [&](Cost& cost, double steps) {
    cost.model_flops = layers * cost.model_flops + steps * 2 * batch * multiplied;
    cost.executed_flops = layers * cost.executed_flops + steps * 2 * batch * multiplied;
    cost.state_bytes *= layers;
    // The state is read, and so is every weight; logits are written.
    cost.minimal_bytes = steps * (cost.state_bytes + (weights + batch * vocabulary) * bytes);
  };
  add_model(mix.cost, 1);
  add_model(mix.calls_cost, static_cast<double>(mix.calls));
  if (mix.prefill_cost) {
    Cost& prefill = *mix.prefill_cost;
    const auto tokens = static_cast<double>(mix.problem.length);
    prefill.model_flops = layers * prefill.model_flops + tokens * 2 * batch * multiplied;
    prefill.executed_flops = layers * prefill.executed_flops + tokens * 2 * batch * multiplied;
    prefill.minimal_bytes = layers * prefill.minimal_bytes + weights * bytes;
  }
  // A saved state, its home and a prefill's own, with room for all tokens; one block's tensors of
  // the whole context.
  const double states = layers * chosen(registry, cell, mix).cost(mix.options, whole).state_bytes;
  mix.peak_bytes = weights * bytes + 3 * states + mix.peak_bytes +
                   context * (5 * width + products * hidden) * bytes;
  return mix;
}

}  // namespace attnbench::tasks::decode
