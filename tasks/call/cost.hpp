// From the cost of one forward mix to that of what a call times, and the memory it takes.
#pragma once

#include "tasks/call/settings.hpp"

namespace attnbench::tasks::call {

/// What fills a mechanism's inputs: its roles, and the rows of its latent stream if it has one.
struct Filling {
  std::vector<Role> roles;
  std::int64_t latents = 0;
};

/// `mix`: of one forward mix. FLOPs and bytes of the passes and, by what fills the roles, of the
/// projections inside the clock. A backward pass reads the inputs, what was saved and the output's
/// gradient, and writes the inputs' gradients; that it computes exponentials again is a choice, not
/// a need, so none are counted for it.
Cost timed_cost(const Cost& mix, const Settings& settings, const Filling& filling);

/// All tensors that live at the worst moment of the pass, by the mix's own predictions.
double predicted_peak_bytes(const Cost& mix, const Settings& settings, const Filling& filling);

/// Both of them filled into a forecast of the mix alone, for the call that `settings` say. Does
/// nothing where the forecast is a no.
void price(Forecast& forecast, const Registry& registry, const Cell& cell,
           const Settings& settings);

}  // namespace attnbench::tasks::call
