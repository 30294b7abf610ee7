// Softmax attention over a band of keys: the forms that the mechanisms softmax and window share and
// that others use for their local part, and the decoding state of a causal window.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "attention/kernels/softmax.hpp"
#include "attention/mechanism.hpp"

namespace attnbench {

/// A number of tokens that no sequence reaches.
constexpr std::int64_t unlimited = std::int64_t{1} << 40;

/// One call: q [B, H, T, D], k [B, G, S, D], v [B, G, S, Dv], G a divisor of H. Query t is at key
/// t + offset and sees the real keys s with t + offset - left <= s <= t + offset + right. A query
/// that sees none has output 0 and no gradient.
struct SoftmaxCall {
  at::Tensor q;
  at::Tensor k;
  at::Tensor v;
  at::Tensor key_mask;  ///< [B, S] bool, true at real keys; undefined = all are
  double scale = 1;
  std::int64_t left = unlimited;
  std::int64_t right = unlimited;
  std::int64_t offset = 0;
  /// [B, H, S] in double, log decays summed over the tokens up to each key: the score of query t
  /// and key s gains log_decay[t + offset] - log_decay[s]. Undefined = nothing. Forms composite and
  /// chunked alone, which take the difference in double: sums lose digits as they grow.
  at::Tensor log_decay = {};
  /// [B, H, T, S] bool, true where a query does not see a key of its band. Undefined = it sees all
  /// of them. Form composite alone.
  at::Tensor unseen = {};

  std::int64_t length() const { return q.size(2); }
  std::int64_t key_length() const { return k.size(2); }
  /// Whether every query sees every key, padding aside.
  bool sees_all() const;
  /// Whether there may be a query that sees no key.
  bool may_see_none() const;
  /// The call with zeros for padded keys and values.
  SoftmaxCall without_padding() const;
  /// What decays add to the scores of `rows` queries from t0 and `keys` keys from s0, [B, H, rows,
  /// keys]. A query's own sum moves all its scores alike: it changes no output, but its gradient
  /// takes off what rounding leaves of a sum over keys that is 0.
  at::Tensor added_decay(std::int64_t t0, std::int64_t rows, std::int64_t s0, std::int64_t keys,
                         at::ScalarType type) const;
};

/// Scores, mask and weights as whole [B, H, T, S] tensors.
at::Tensor softmax_composite(const SoftmaxCall& call);

/// Rabe and Staats 2021: chunks of queries against chunks of keys, whose partial sums are combined.
/// Chunks of keys that no query of the chunk sees are skipped. The backward pass recomputes the
/// weights from the logarithm of their sums, so that no T x S matrix is kept.
at::Tensor softmax_chunked(const SoftmaxCall& call, std::int64_t query_chunk,
                           std::int64_t key_chunk);

/// The tiled kernel (attention/kernels/softmax.hpp): float32, float64 and bfloat16 on the CPU;
/// float32, bfloat16 and float16 on a CUDA device.
at::Tensor softmax_tiled(const SoftmaxCall& call);
/// Whether it supports `problem` with these sizes, and the workspace of its forward pass.
Support tiled_supports(const Problem& problem, const kernels::SoftmaxSizes& sizes);
double tiled_workspace_bytes(const Problem& problem, const kernels::SoftmaxSizes& sizes);
/// Growth::from_length of its workspace: below, a work item of a band's queries is not full.
inline constexpr std::int64_t kGrowingItems = 1024;

/// Adds to `state` room for all tokens: "key" [B, G, capacity, D] and "value" [B, G, capacity, Dv].
void add_cache(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               const at::TensorOptions& tensor);

/// Tensors of new tokens, [B, G, n, w] or [B, H, n], by the name of their room in a state.
using NewTokens = std::vector<std::pair<const char*, at::Tensor*>>;

/// Stores new tokens and their mask [B, n] in the state, advances the position, and replaces each
/// tensor by that of all tokens so far. The mask is stored once one is given. Throws UsageError,
/// which names the mechanism, if there is no room.
void take_into_cache(const std::string& mechanism, State& state, const NewTokens& tokens,
                     at::Tensor& key_mask);
/// The keys, values, mask and log decays, if there are any, of `call` are new tokens: stores them
/// in "key", "value" and "log_decay" likewise.
void take_into_cache(const std::string& mechanism, State& state, SoftmaxCall& call);

/// Adds to `state` the ring buffers "key" [B, G, slots, D] and "value" [B, G, slots, Dv] of a
/// window that extends `left` tokens back; token p is in slot p mod slots, and there are left + 1
/// slots, or `capacity` if that is less.
void add_rings(State& state, const Problem& problem, std::int64_t batch, std::int64_t capacity,
               std::int64_t left, const at::TensorOptions& tensor);

/// The keys, values and mask of `call` are new tokens, the first of them token `state.position`:
/// stores them in the ring buffers, and extends the call by the past keys that its first query
/// sees. The caller advances the position.
void take_into_rings(State& state, SoftmaxCall& call);

// ---- what the backward passes of the forms keep

/// `lse` is the logarithm of the sum of exponentials per query, +infinity if it sees no key.
struct SavedSoftmax {
  SoftmaxCall call;
  at::Tensor out;
  at::Tensor lse;
};
void save(torch::autograd::AutogradContext* context, const SavedSoftmax& saved);
SavedSoftmax restore(torch::autograd::AutogradContext* context);

}  // namespace attnbench
