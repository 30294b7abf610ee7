// Linear attention by features, for any map phi:
//   y_t = sum_s (phi(q_t).phi(k_s)) v_s / (sum_s phi(q_t).phi(k_s) + epsilon), s visible.
// Of exponential features the logarithms are mixed, in the pooled form of
// attention/algorithms/prefix_pool/prefix_pool.hpp, y_t = sum_i softmax_i(h_i(q_t) + z_{t,i})
// M_{t,i}: there nothing overflows, no denominator vanishes and no epsilon is needed. All others
// are mixed by the causal product.
#pragma once

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/tokens/operand.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::feature_mix {

enum class Way { composite, scan, chunked, fused };

/// Queries and keys [B, H, T or S, w] as the features, or their logarithms, are made of them;
/// values [B, H, S, Dv]. Padding is hidden in the keys and 0 in the values.
struct Call {
  Operand query, key;
  at::Tensor value;
  bool logarithms = false;         ///< the operands give log phi; else phi, by `form`
  causal_product::Form form = {};  ///< not read with logarithms
};

/// Over all keys. Composite and fused alone differ from one another.
at::Tensor whole(Way way, const Call& call);
/// Over the keys up to each query's own.
at::Tensor causal(Way way, const Call& call, std::int64_t chunk);
/// The same from a state on, which it advances.
at::Tensor continued(Way way, const Call& call, std::int64_t chunk, State& state);

/// The state before the first token: "sum" and "normaliser", and "maximum" with logarithms; in
/// float32 for 16-bit inputs, since sums over many tokens need the mantissa.
State empty_state(const Problem& problem, std::int64_t batch, std::int64_t features,
                  bool logarithms, const at::TensorOptions& tensor);

// ---- costs

struct Sizes {
  causal_product::ProductSizes n;
  double dim = 1;           ///< D of queries and keys
  bool logarithms = false;  ///< by the pool; else by the product
  double making = 0;        ///< FLOPs of making the features of all queries and keys
  double own_numbers = 0;   ///< of the map's weights
  double chunk = 1;

  /// Whether queries and keys are not the features themselves.
  bool made() const { return making > 0; }
};

/// Of the mix and of making the features: in parts of the sequence but for composite.
Cost cost(Way way, const Sizes& sizes, const Problem& problem);

Support fused_supports(const std::string& mechanism, const Problem& problem, std::int64_t features,
                       bool logarithms);

}  // namespace attnbench::feature_mix
