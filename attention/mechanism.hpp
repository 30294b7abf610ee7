// The one interface: what a mechanism says of itself, and how it mixes tokens.
//
// A mechanism is three things. An `Entry` describes it and answers questions without running
// anything. A `Mechanism` is a module: the configuration, the parameters and buffers, the inputs it
// wants. An `Implementation` is one way of computing it; all implementations of an entry give the
// same numbers, and the first one, `composite`, is plain tensor operations.
//
// Shapes everywhere: query-side inputs [B, H, T, w], key-side inputs [B, H, S, w], output
// [B, H, T, Dv]. B batch, H heads, T query tokens, S key tokens, w the role's width per head.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/option.hpp"
#include "core/problem.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench {

/// The tensor library's word for it.
at::ScalarType scalar_type(Dtype dtype);

/// Yes, or the reason why not.
struct Support {
  bool yes = true;
  std::string reason;
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return yes; }
};

/// What one forward mix costs, for the whole problem (all batches and heads).
struct Cost {
  double model_flops = 0;  ///< of the recurrent or algebraic minimum: equal for all implementations
  double executed_flops = 0;  ///< what this implementation really does
  double minimal_bytes = 0;   ///< inputs read once, outputs written once
  double exponentials = 0;
  double workspace_bytes = 0;  ///< predicted peak beyond inputs and output, forward
  double saved_bytes = 0;      ///< kept for backward, beyond inputs and output
  double state_bytes = 0;      ///< of one decoding state after `length` tokens
  /// Factors over the forward numbers for the backward pass alone.
  double backward_flops = 2.5;
};

/// Exponents of growth in T (tokens), L (latents, 0 where there are none) and D (head_dim), of one
/// implementation's forward pass, asymptotically. Those in T are held to on both sides, those in L and
/// D as upper bounds: see reports/tables/growth.hpp.
struct Growth {
  double time_in_length = 1;
  double workspace_in_length = 1;
  double time_in_latents = 0;
  double workspace_in_latents = 0;
  /// T and L held fixed; a size that follows head_dim (the features of linear) grows with it.
  double time_in_head_dim = 1;
  std::optional<double> workspace_in_head_dim = {};  ///< nothing is claimed unless said
  /// Tokens from which on the exponents in T are to be seen; below, another term hides them.
  std::int64_t from_length = 0;
};

/// What a mechanism claims of itself; the conformance kit holds it to each.
struct Claims {
  bool rows_sum_to_one = true;          ///< y(v + c) = y(v) + c
  bool linear_in_value = true;          ///< y(a v + b v') = a y(v) + b y(v')
  bool permutation_equivariant = true;  ///< bidirectional, without positions
  bool last_row_agrees = true;          ///< causal row T-1 equals bidirectional row T-1
  bool heads_independent = true;        ///< no head sees another (Luna's unpacking mixes them)
};

/// Where the tokens of a role come from.
enum class Source { query_tokens, key_tokens, latent_stream };
/// How a role is fed: x W; the head's slice of x; or W applied to Mechanism::before(x).
enum class Feed { projected, slice, before };

/// One named input of `mix`.
struct Role {
  std::string name;
  Source source = Source::key_tokens;
  std::int64_t width = 0;  ///< per head
  Feed feed = Feed::projected;
};

/// The inputs of one mix, by role name.
struct Inputs {
  std::map<std::string, at::Tensor> tensors;
  /// [B, S] bool, true where the key token is real; undefined = all are.
  at::Tensor key_mask;
  const at::Tensor& operator[](const std::string& role) const;
};

/// What a causal mechanism carries from token to token: named tensors, updated in place, and the
/// number of tokens seen. Copyable by `clone`, so that one prefill serves many continuations.
struct State {
  std::map<std::string, at::Tensor> tensors;
  std::int64_t position = 0;
  std::int64_t bytes() const;
  State clone() const;
  at::Tensor& operator[](const std::string& name);
};

struct Mixed {
  at::Tensor output;   ///< [B, H, T, Dv]
  at::Tensor latents;  ///< the new latent stream, where there is one
};

/// A configured mechanism: its choices, its parameters, the inputs it wants.
class Mechanism : public torch::nn::Module {
 public:
  Mechanism(std::string name, Options chosen, Problem asked)
      : torch::nn::Module(std::move(name)), options(std::move(chosen)), problem(std::move(asked)) {}

  virtual std::vector<Role> roles() const = 0;
  /// What comes before the projection of every role fed by `Feed::before`, [B, T, C] to [B, T, C]:
  /// a short convolution, a recurrence. With a state it continues from the tensors that it keeps
  /// there and advances them; the position is advanced by `mix`.
  virtual at::Tensor before(const at::Tensor& x, State* state);
  /// Draws parameters and buffers anew, from the seed alone. `Entry::make` has drawn them with
  /// seed 0. Nothing by default.
  virtual void draw_parameters(std::uint64_t seed);
  /// A state that has seen nothing, in the inputs' dtype and device; throws UnsupportedError where
  /// the mechanism has none. `capacity` is the greatest number of tokens it will ever see.
  virtual State empty_state(std::int64_t batch, std::int64_t capacity,
                            const at::TensorOptions& tensor) const;

  const Options options;
  const Problem problem;
};

/// One way of computing a mechanism.
struct Implementation {
  std::string name;   ///< composite, scan, chunked, tiled, fused, …
  std::string title;  ///< one line: which algorithm, from where
  std::function<Support(const Options&, const Problem&)> supports;
  /// Without a state: the whole sequence. With one: continue from it and advance it (causal only).
  std::function<Mixed(Mechanism&, const Inputs&, State*)> mix;
  std::function<Cost(const Options&, const Problem&)> cost;
  Growth growth;
  bool differentiable = true;
  /// The greatest `auto` rank among those that support the problem is taken by `auto`.
  int rank = 0;
};

/// A name for a mechanism with an implementation and options chosen.
struct Alias {
  std::string name;
  std::string mechanism;
  std::string implementation;  ///< or "auto"
  std::map<std::string, OptionValue> options;
  std::string title;
};

/// Where numbers are not those of the published code or paper.
struct Departure {
  std::string what;  ///< what differs, naming the publication: "no 1/sqrt(D) in the paper"
  std::string how;   ///< how to get the published form here, or why it is not offered
};

/// Everything the registry knows of a mechanism.
struct Entry {
  std::string name;
  std::string title;
  std::string citation;
  std::vector<Option> options;
  Claims claims;
  std::vector<Pattern> patterns;
  /// May depend on sizes and options; asked before `make`.
  std::function<Support(const Options&, const Problem&)> supports;
  /// `options` as resolved against the declaration. May add derived values, such as
  /// latents_total from latents_per_head; throws UsageError where choices contradict each other.
  std::function<Options(const Options&, const Problem&)> derive;
  std::function<std::shared_ptr<Mechanism>(const Options&, const Problem&)> make;
  std::vector<Implementation> implementations;  ///< the first is `composite`
  std::vector<Alias> aliases;
  std::vector<Departure> differs_from;  ///< known departures from published code; told to users

  const Implementation& implementation(const std::string& name) const;
  const Implementation* find_implementation(const std::string& name) const;
};

}  // namespace attnbench
