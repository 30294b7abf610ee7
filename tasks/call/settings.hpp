// Settings of a timed call, which say what is inside the clock, and its forecast.
//
// A call may continue: of `past` tokens, which are read into a state before the clock starts, it
// mixes the `length` tokens that follow. Its problem then has more keys than queries, and the last
// query is at the last key.
//
// Its FLOPs and bytes are those of the timed passes and of the projections inside the clock. A
// backward pass reads the inputs, the saved tensors and the output's gradient, and writes the
// inputs' gradients; it need not compute exponentials again, so none are counted for it. Rotations
// to positions are not counted: they are a few operations for each number of queries and keys.
#pragma once

#include <optional>
#include <vector>

#include "attention/layer.hpp"
#include "tasks/task.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::call {

/// Which passes are inside the clock.
enum class Pass { forward, backward, forward_backward };

const char* to_string(Pass pass);

struct CallSettings {
  /// `gradient` is set where the pass has a backward; key_length counts the past.
  Problem problem;
  Pass pass = Pass::forward;
  Scope scope = Scope::mix;                     ///< of the attention; `layer` inside a model
  std::optional<training::ModelOptions> model;  ///< of the scope `model`
  /// The positions in the scopes `projected` and `layer`, none or rotary; those of the scope
  /// `model` are the model's.
  training::Positions positions = training::Positions::none;
  double input_scale = 1;
  std::int64_t past = 0;  ///< tokens in the state from which the call continues; 0 = no state
  std::vector<std::int64_t> lengths = {};  ///< of each sequence; empty = all are problem.length

  bool has_backward() const { return pass != Pass::forward; }
  /// The problem of all tokens, those of the past included: what the mechanism is made for.
  Problem whole_problem() const;
};

/// All settings: sizes, length, key_length, past, lengths and declared_kinds().
std::vector<Option> declared_settings();
/// The settings that do not depend on the length: pattern, pass, scope, and those of the scope
/// `model`.
std::vector<Option> declared_kinds();

/// Reads `length` and the settings above. Throws UsageError where sizes contradict each other, and
/// where `past` or `lengths` go with other settings.
CallSettings settings_from(const Options& settings);

/// The forecast of the call of `settings`; `support` is no, with the reason, where the cell cannot
/// run. `cost` is that of the timed passes, `peak_bytes` the greatest size of all live tensors,
/// both by the mix's own predictions. Throws UsageError for invalid options.
TaskForecast forecast_call(const Registry& registry, const ResolvedCell& cell,
                           const CallSettings& settings);

/// Turns the forecast of a mix alone (forecast_mix) into that of the call of `settings`. Does
/// nothing where it is unsupported.
void add_call_cost(TaskForecast& forecast, const Registry& registry, const ResolvedCell& cell,
                   const CallSettings& settings);

}  // namespace attnbench::tasks::call
