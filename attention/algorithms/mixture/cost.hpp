// What the mixture of a window and latents costs: the sum of its parts.
#pragma once

#include "attention/algorithms/mixture/mixture.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::mixture {

/// Reads the options latents_per_head, window and chunk.
Cost cost(Form form, const Options& options, const Problem& problem);
/// Whether the tiled kernel does the window.
Support window_supports(const Options& options, const Problem& problem);

}  // namespace attnbench::mixture
