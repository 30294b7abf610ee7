// The implementations that softmax and window have in common: what each supports and costs.
#pragma once

#include <functional>

#include "attention/mechanism.hpp"
#include "attention/algorithms/softmax/forms.hpp"

namespace attnbench {

/// How a mechanism says which keys are seen, and how it makes a call of its inputs.
struct BandedMechanism {
  /// Sides of the band; `unlimited` where it has no end.
  std::function<Window(const Options&, const Problem&)> band;
  /// Advances the state, if there is one.
  std::function<SoftmaxCall(const Mechanism&, const Inputs&, State*)> call;
  /// Keys that one decoding state holds after `length` tokens.
  std::function<std::int64_t(const Options&, const Problem&)> state_keys;
};

Implementation composite_softmax(const BandedMechanism& mechanism);
/// Reads the options query_chunk and key_chunk.
Implementation chunked_softmax(const BandedMechanism& mechanism);
/// In the kernel of the problem's device.
Implementation tiled_softmax(const BandedMechanism& mechanism);
/// The same on a CUDA device alone, by the name that the other mechanisms' kernels have.
Implementation fused_softmax(const BandedMechanism& mechanism);

/// What is the same however it is computed: model FLOPs, minimal bytes, state.
Cost common_softmax_cost(const BandedMechanism& mechanism, const Options& options,
                         const Problem& problem);
/// Pairs computed by blocks of `rows` queries against the keys that any of them sees, in blocks of
/// `columns` keys which are computed whole if `whole`.
double blocked_pairs(const Problem& problem, const Window& band, std::int64_t rows,
                     std::int64_t columns, bool whole);

/// The declaration of query_chunk and key_chunk.
std::vector<Option> chunk_options(std::int64_t query_chunk, std::int64_t key_chunk);
/// The declaration of scale, and its value with 0 resolved to 1/sqrt(head_dim).
Option scale_option();
double scale_of(const Mechanism& mechanism);

}  // namespace attnbench
