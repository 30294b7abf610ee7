// How the states of a mixture of latents are used: a map of tokens and states for each mechanism.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// The probabilities p(l | t) of the tokens of a text, as squares of token and state, for each
/// mechanism that records it; of the first seed at the chosen learning rate. Its heading has the
/// share of states in use. Nothing where no record holds them.
std::optional<Figure> latent_probabilities_figure(const Panel& panel, const Palette& palette);

}  // namespace attnbench::reports
