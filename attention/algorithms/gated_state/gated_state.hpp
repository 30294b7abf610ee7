// Recurrences of a matrix-valued state with gates: what retention, gated linear attention, the
// state space duality of Mamba-2, the delta rule and RWKV-7 have in common.
//   S_t = (I - beta_t k_t k_t^T) diag(exp g_t) S_{t-1} + k_t v_t^T,   y_t = S_t^T q_t,
// with S_t [D, Dv] and log decays g_t <= 0, one for each row of the state or one for all of them;
// or, with a removal key r_t of its own and a beta_t for each row,
//   S_t = (diag(exp g_t) - (beta_t r_t) r_t^T) S_{t-1} + k_t v_t^T.
// Yang et al. 2024 (GLA, arXiv:2312.06635), Yang et al. 2024 (DeltaNet, arXiv:2406.06484), Peng et
// al. 2025 (RWKV-7, arXiv:2503.14456).
//
// Every form is right for gates of any strength: exponentials are taken only of sums of log decays
// between two tokens, which are not positive, and such sums are never differences of longer ones.
// Where a mechanism bounds its decays (Call::steepest), sums to the middle of a block are taken, of
// either sign, which are at most 10.
// Keys are expected to have a norm of at most 1 where beta erases, and beta to lie in [0, 2]: then
// no erasure lengthens the state; one by a removal key may, where betas differ within a token.
// 16-bit inputs are computed in float32.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "attention/algorithms/tokens/token_mix.hpp"
#include "attention/mechanism.hpp"

namespace attnbench::gated_state {

struct Call {
  at::Tensor query, key;  ///< [B, H, T, D]
  at::Tensor value;       ///< [B, H, T, Dv], times beta where the mechanism has one
  at::Tensor log_decay;   ///< [B, H, T, D or 1]; undefined = no decay
  at::Tensor beta;        ///< [B, H, T, 1]; undefined = nothing is erased
  at::Tensor added;       ///< [B, H, T, Dv], added to the output; undefined = nothing
  /// The removal key [B, H, T, D], with log_decay and beta of D; undefined = the key erases.
  at::Tensor removal = {};
  /// The read is of columns, y_t = S_t q_t [B, H, T, D], for a query [B, H, T, Dv]: which key is
  /// like it? Only with a log decay for each row, and without beta.
  bool reads_columns = false;
  double scale = 1;  ///< what queries are multiplied by
  /// No log decay of a channel is below -steepest, by how the mechanism computes it.
  double steepest = std::numeric_limits<double>::infinity();

  at::Tensor scaled_query() const { return scale == 1 ? query : query * scale; }
};

/// The forms. Each returns y in the dtype of `value`, with gradients by autograd. If
/// `state` [B, H, D, Dv] is defined they continue from it, advance it in place and record no
/// gradients.

/// The form for all tokens at once, by a [T, T] matrix.
at::Tensor parallel(const Call& call, at::Tensor state = {});
/// The form token by token.
at::Tensor scan(const Call& call, at::Tensor state = {});
/// The form by chunks of `chunk` tokens side by side, then the state from chunk to chunk. An
/// erasure is solved for within a chunk: the WY form of Yang et al. 2024 (DeltaNet), section 3.2.
at::Tensor chunked(const Call& call, std::int64_t chunk, at::Tensor state = {});

/// The form in one kernel, see attention/kernels/gated_state.hpp. It computes in float32 for 16-bit
/// inputs; its gradients are a kernel, too.
at::Tensor fused(const Call& call, at::Tensor state = {});
/// Whether it does a problem with `rows` rows of state and so many log decays of a token. On a CUDA
/// device only a causal product, with one decay a token or none.
Support fused_supports(const Problem& problem, std::int64_t rows, double gates, bool erases);

// ---- entries

struct StateSizes {
  double heads = 1;   ///< batch times heads
  double tokens = 1;  ///< T
  double rows = 1;    ///< D
  double width = 1;   ///< Dv
  double gates = 0;   ///< log decays of a token that are inputs: 0, 1 or D
  double shared = 1;  ///< heads that share a query and a key
  double rates = 0;   ///< betas of a token: 0, 1, or D with a removal key
  bool decays = true;
  double bytes = 4;  ///< of one element of the inputs
  double wide_bytes() const { return bytes > 4 ? bytes : 4; }
  bool erases() const { return rates > 0; }
};
StateSizes sizes_of(const Problem& problem, std::int64_t rows);
/// The sizes with a log decay for each channel of the key, which are the rows of the state.
StateSizes channel_gated_sizes(const Options& options, const Problem& problem);

Cost parallel_cost(const StateSizes& sizes);
Cost scan_cost(const StateSizes& sizes);
Cost chunked_cost(const StateSizes& sizes, double chunk);

// ---- what is done with a head's output, as the option `output` says

/// The option `output`: plain, the mix alone; normalised, each token's output y of a head divided
/// by sqrt(mean(y^2) + 1e-5); gated, that times silu of a role of its own.
Option output_option();
/// y [B, H, T, Dv] as the option says, in float32 at least where it is not plain.
at::Tensor finished_output(const Mechanism& mechanism, const Inputs& inputs, const at::Tensor& y);
/// The cost of a mix and of that.
Cost finished_cost(Cost mix, const Options& options, const Problem& problem);
/// How the published layers differ in it.
inline constexpr const char* kOutputSaid =
    "output=gated (or normalised); its norm has no weights, which the output projection can hold";

/// What a mechanism of this kind says: how its inputs, from position `first` on, become a call, and
/// its sizes.
struct Recipe {
  std::string mechanism;
  std::function<Call(const Mechanism&, const Inputs&, std::int64_t first)> call;
  std::function<StateSizes(const Options&, const Problem&)> sizes;
};

/// The implementations composite, scan, chunked and fused, whose state is "memory" [B, H, D, Dv];
/// the mechanism has the options `chunk` and `output`.
std::vector<Implementation> implementations(const Recipe& recipe);
/// An entry of that name with those implementations, and the claims, the pattern and the support of
/// this kind; the rest, `make` included, is the mechanism's.
Entry entry_of(const Recipe& recipe);
/// A mechanism of this kind, with the options that `options` adds to its own.
class GatedState : public MixesTokens {
 public:
  GatedState(const std::string& name, const Options& chosen, const Problem& asked)
      : MixesTokens(name, chosen, asked, chosen.integer("chunk")) {}

  /// The state before the first token, in float32 for 16-bit inputs, and that of `before`.
  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override;

 protected:
  /// Rows of a head's state.
  virtual std::int64_t rows() const { return problem.head_dim; }
  /// The roles of the mix, of which `before` feeds those of these names, and "output_gate"
  /// [B, H, T, Dv] where the output is gated.
  std::vector<Role> finished_roles(std::vector<Role> roles, const std::vector<std::string>& fed = {
                                                                "query", "key", "value"}) const;
};

/// The options of a mechanism: its own, `output`, what may come `before` the roles that `fed`
/// names, and `chunk`.
std::vector<Option> options(std::vector<Option> own,
                            const std::string& fed = "queries, keys and values");
/// How the published layers differ in what comes before.
inline constexpr const char* kBeforeSaid =
    "before=conv puts one before the projections, over the width of the model and without SiLU";

/// x / sqrt(|x|^2 + epsilon): of norm 1 but for epsilon, and 0 where x is 0.
at::Tensor normalised(const at::Tensor& x, double epsilon);
/// log(1 + e^x), exact for any x.
at::Tensor stable_softplus(const at::Tensor& x);
/// Log decays -exp(a_log) softplus(x + bias), for x [B, H, T, w] and parameters a_log [H, 1] and
/// bias [H, w]: Dao, Gu 2024 (Mamba-2). 0 at padding.
at::Tensor learned_decay(const at::Tensor& x, const at::Tensor& a_log, const at::Tensor& bias,
                         const at::Tensor& key_mask);
/// Draws those parameters as Mamba-2 does: a_log so that exp(a_log) is uniform in [1, 16], bias so
/// that softplus(bias) is uniform in its logarithm between 0.001 and 0.1.
void draw_decay_parameters(std::uint64_t seed, const at::Tensor& a_log, const at::Tensor& bias,
                           const Problem& problem);
/// Refuses patterns other than causal, with the reason.
Support looks_back_only(const std::string& mechanism, const Problem& problem);

}  // namespace attnbench::gated_state
