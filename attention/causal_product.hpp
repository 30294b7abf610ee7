// CP, the causal product: what linear attention is made of, and what Performer, Luna and the
// decaying linear forms reuse.
//
//   O_t = sum_{s<=t} (a_t . b_s) c_s,  a, b [B, H, T, F],  c [B, H, T, M],
// with the state S_t = sum_{s<=t} b_s c_s^T. Katharopoulos et al. 2020 (Transformers are RNNs),
// eq. 10-15. Sizes of more than 16 bits per element are expected: callers widen.
#pragma once

#include <cstdint>

#include "attention/torch.hpp"

namespace attnbench::causal_product {

/// Every state at once, [B, H, T, F, M] in memory. Gradients by autograd. `state` [B, H, F, M],
/// where defined, is what came before; it is advanced in place, and then nothing is recorded for
/// gradients.
at::Tensor materialised(const at::Tensor& a, const at::Tensor& b, const at::Tensor& c,
                        at::Tensor state = {});

}  // namespace attnbench::causal_product
