// The implementations of softmax and window: what each supports and costs; and options of banded
// mechanisms.
#pragma once

#include <functional>
#include <vector>

#include "attention/algorithms/softmax/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// A mechanism whose queries see a band of keys.
struct BandedMechanism {
  /// Sides of the band; `unlimited` if it has no end.
  std::function<Window(const Options&, const Problem&)> band;
  /// Makes a call of the inputs and updates the state, if there is one.
  std::function<SoftmaxCall(const Mechanism&, const Inputs&, State*)> call;
  /// Keys that one decoding state holds after `length` tokens.
  std::function<std::int64_t(const Options&, const Problem&)> state_keys;
};

Implementation composite_softmax(const BandedMechanism& mechanism);
/// Reads the options query_chunk and key_chunk.
Implementation chunked_softmax(const BandedMechanism& mechanism);
/// The implementation in the kernel of the problem's device.
Implementation tiled_softmax(const BandedMechanism& mechanism);
/// The tiled implementation on a CUDA device only, under the name of the other mechanisms' kernels.
Implementation fused_softmax(const BandedMechanism& mechanism);
/// torch_sdpa, where LibTorch chooses the backend, and, if LibTorch supports CUDA,
/// torch_sdpa_flash, _cudnn, _efficient and _math, which refuse what their backend does not
/// support. Empty for LibTorch before 2.1.
std::vector<Implementation> sdpa_softmax(const BandedMechanism& mechanism);
/// All implementations above.
std::vector<Implementation> softmax_implementations(const BandedMechanism& mechanism);

/// The cost common to all implementations: model FLOPs, minimal bytes, state.
Cost common_softmax_cost(const BandedMechanism& mechanism, const Options& options,
                         const Problem& problem);
/// Pairs computed by blocks of `rows` queries against the keys that any of them sees; with `whole`,
/// in complete blocks of `columns` keys.
double blocked_pairs(const Problem& problem, const Window& band, std::int64_t rows,
                     std::int64_t columns, bool whole);

/// The options `first`, then the options query_chunk and key_chunk with these defaults.
std::vector<Option> chunk_options(std::vector<Option> first, std::int64_t query_chunk,
                                  std::int64_t key_chunk);
/// The option scale, and its value with 0 resolved to 1/sqrt(head_dim).
Option scale_option();
double scale_of(const Mechanism& mechanism);
/// The option window: 128 keys by default.
Option window_option();
/// `options` with the sides of `window` filled in. Throws UsageError for a causal window with keys
/// from the future.
Options derive_window(const Options& options, const Problem& problem);

}  // namespace attnbench
