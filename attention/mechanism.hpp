// The interface of mechanisms.
//
// A mechanism has three parts. An `Entry` describes it and answers questions without computing. A
// `Mechanism` is a module: configuration, parameters, buffers and declared inputs. An
// `Implementation` is one way of computing it. All implementations of an entry give the same
// numbers; the first, `composite`, consists of plain tensor operations.
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

#include "attention/torch/torch.hpp"
#include "core/claims.hpp"
#include "core/errors.hpp"
#include "core/option.hpp"
#include "core/problem.hpp"

namespace attnbench {

/// LibTorch's name for the dtype.
at::ScalarType scalar_type(Dtype dtype);

/// Whether something is supported, and the reason if not.
struct Support {
  bool yes = true;
  std::string reason;
  static Support no(std::string why) { return {false, std::move(why)}; }
  explicit operator bool() const { return yes; }
};

/// Which tokens a role is made of.
enum class Source { query_tokens, key_tokens, latent_stream };
/// How a role is made: x W; the head's slice of x; or Mechanism::before(x) W.
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
  /// [B, S] bool, true for real key tokens, false for padding; undefined = all are real.
  at::Tensor key_mask;
  const at::Tensor& operator[](const std::string& role) const;
};

/// The decoding state of a causal mechanism: named tensors, updated in place, and the number of
/// tokens seen. `clone` copies it, so that one prefill serves many continuations.
struct State {
  std::map<std::string, at::Tensor> tensors;
  std::int64_t position = 0;
  std::int64_t bytes() const;
  State clone() const;
  at::Tensor& operator[](const std::string& name);
};

struct Mixed {
  at::Tensor output;   ///< [B, H, T, Dv]
  at::Tensor latents;  ///< the new latent stream, if there is one
};

/// While it exists, mechanisms that this thread makes hold these tensors as their parameters and
/// buffers, those of them that they name so, in place of tensors of their own. Weights of a caller
/// are thus used as they are: no copy, and gradients reach them.
class GivenWeights {
 public:
  explicit GivenWeights(std::map<std::string, at::Tensor> weights);
  ~GivenWeights();
  GivenWeights(const GivenWeights&) = delete;
  GivenWeights& operator=(const GivenWeights&) = delete;
  /// Whether one exists in this thread: what it gave must not be drawn over.
  static bool any();
  /// The tensor of that name, or null.
  static const at::Tensor* find(const std::string& name);

 private:
  std::map<std::string, at::Tensor> weights_;
  const GivenWeights* before_;
};

/// A configured mechanism: options, problem, parameters and declared inputs.
class Mechanism : public torch::nn::Module {
 public:
  Mechanism(std::string name, Options chosen, Problem asked)
      : torch::nn::Module(std::move(name)), options(std::move(chosen)), problem(std::move(asked)) {}

  virtual std::vector<Role> roles() const = 0;
  /// [B, H or the key heads, tokens, width] of a role. A latent stream has `latents_per_head`
  /// tokens, or head_dim where there is no such option.
  std::vector<std::int64_t> shape_of(const Role& role) const;
  /// Applied before the projection of every role with `Feed::before`, [B, T, C] to [B, T, C]: a
  /// short convolution, a recurrence. With a state it continues from its tensors there and updates
  /// them; `mix` advances the position.
  virtual at::Tensor before(const at::Tensor& x, State* state);
  /// Draws parameters and buffers from the seed alone. `Entry::make` draws them with seed 0. Does
  /// nothing by default.
  virtual void draw_parameters(std::uint64_t seed);
  /// The state before the first token, for inputs of this dtype and device. `capacity` is the
  /// largest number of tokens it will hold. Throws UnsupportedError if the mechanism has no state.
  virtual State empty_state(std::int64_t batch, std::int64_t capacity,
                            const at::TensorOptions& tensor) const;

  /// torch::nn::Module's, but for GivenWeights. Throw UsageError where a given one is of another
  /// shape or dtype.
  at::Tensor& register_parameter(const std::string& name, const at::Tensor& own,
                                 bool requires_grad = true);
  at::Tensor& register_buffer(const std::string& name, const at::Tensor& own);

  const Options options;
  const Problem problem;
};

using Supports = std::function<Support(const Options&, const Problem&)>;
using Mix = std::function<Mixed(Mechanism&, const Inputs&, State*)>;
using CostOf = std::function<Cost(const Options&, const Problem&)>;

/// Supports every problem.
inline Support supports_all(const Options&, const Problem&) { return {}; }

/// One way of computing a mechanism.
struct Implementation {
  std::string name = {};   ///< composite, scan, chunked, tiled, fused, …
  std::string title = {};  ///< one line: the algorithm and its source
  Supports supports = supports_all;
  /// Without a state: mixes the whole sequence. With one: continues from it and advances it (causal
  /// pattern only).
  Mix mix = {};
  CostOf cost = {};
  Growth growth = {};  ///< with the default options
  /// The growth where options change it; undefined = `growth` for all.
  std::function<Growth(const Options&)> growth_with = {};
  bool differentiable = true;
  /// `auto` selects the implementation of the highest rank that supports the problem.
  int rank = 0;
  /// The rank on a CUDA device, where it is another.
  std::optional<int> cuda_rank = {};
};

/// The description of a mechanism.
struct Entry {
  std::string name;
  std::string title;
  std::string citation;
  /// What it computes, by the letters of its source, a line an equation: sum_s over tokens, x_t,l
  /// with two indices, a.b a product over channels, softmax_s over s. `reference/` computes it.
  std::string formula;
  std::vector<Option> options;
  Claims claims;
  std::vector<Pattern> patterns;
  /// Whether any implementation can support the problem; called before `make`.
  Supports supports = supports_all;
  /// Takes resolved options and returns them with derived values, such as latents_total from
  /// latents_per_head. Throws UsageError if options contradict each other. The identity by default.
  std::function<Options(const Options&, const Problem&)> derive =
      [](const Options& resolved, const Problem&) { return resolved; };
  std::function<std::shared_ptr<Mechanism>(const Options&, const Problem&)> make;
  std::vector<Implementation> implementations;  ///< the first is `composite`
  std::vector<Alias> aliases;
  std::vector<Departure> differs_from;  ///< known differences from published code; shown to users

  const Implementation& implementation(const std::string& name) const;
  const Implementation* find_implementation(const std::string& name) const;
};

}  // namespace attnbench
