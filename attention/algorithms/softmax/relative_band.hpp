// Softmax over a band of keys with a learnable bias by distance (LAVO section 3.3, T5 and many
// others), in blocks of queries against the keys that any of them sees.
#pragma once

#include "attention/algorithms/softmax/softmax.hpp"

namespace attnbench {

/// The biases P of distances -reach to reach: bias[s - t + reach] is added to the score of query t
/// and key s.
struct RelativeBias {
  at::Tensor bias;  ///< [2 reach + 1]; undefined = none
  std::int64_t reach = 0;
};

/// The output [B, H, T, Dv] in `compute_type`, with gradients by autograd, the bias included. Each
/// query must have a key in its band, padded or not, and H = G. The workspace is T times the band.
at::Tensor relative_band(const SoftmaxCall& call, const RelativeBias& bias);

/// The attention in the tiled kernel, in the dtype of the inputs and with a workspace that does not
/// grow with T; a query may see no key. The band must not exceed the bias. On a CUDA device the
/// kernel has no bias: `tiled_supports` refuses it.
at::Tensor relative_band_tiled(const SoftmaxCall& call, const RelativeBias& bias);

/// One query per head against keys in any order: key i of `call` is at `distance[i]` from it, and
/// all real keys are seen.
at::Tensor relative_token(const SoftmaxCall& call, const RelativeBias& bias,
                          const at::Tensor& distance);

/// Queries per block of `relative_band`, and the keys of one block.
struct BandBlock {
  std::int64_t rows, columns;
};
BandBlock band_block(std::int64_t length, std::int64_t left, std::int64_t right);

}  // namespace attnbench
