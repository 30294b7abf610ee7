// Forecasts of timed calls: their cost and memory, from those of one forward mix.
//
// FLOPs and bytes are those of the timed passes and of the projections inside the clock. A backward
// pass reads the inputs, the saved tensors and the output's gradient, and writes the inputs'
// gradients; it need not compute exponentials again, so none are counted for it. The memory of a
// whole model adds what its blocks save; norms and activations add no FLOPs.
#pragma once

#include "tasks/call/settings.hpp"

namespace attnbench::tasks::call {

/// The forecast of the call of `settings`; `support` is no, with the reason, where the cell cannot
/// run. `cost` is that of the timed passes, `peak_bytes` the greatest size of all live tensors,
/// both by the mix's own predictions. Throws UsageError for invalid options.
Forecast forecast_call(const Registry& registry, const Cell& cell, const Settings& settings);

/// Turns the forecast of a mix alone (forecast_mix) into that of the call of `settings`. Does
/// nothing where it is unsupported.
void add_call_cost(Forecast& forecast, const Registry& registry, const Cell& cell,
                   const Settings& settings);

}  // namespace attnbench::tasks::call
