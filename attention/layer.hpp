// Layer: from tokens to tokens. Fills a mechanism's roles, mixes, projects out.
#pragma once

#include <memory>

#include "attention/mechanism.hpp"

namespace attnbench {

/// What is inside: only the mixing, the input projections too, or the output projection as well.
enum class Scope { mix, projected, layer };

const char* to_string(Scope scope);
Scope scope_from(const std::string& word);

/// Random inputs of `mix` for a mechanism: normal with standard deviation `scale`, one tensor per
/// role in the problem's dtype. The seed and the sizes alone decide the numbers; a role of one name
/// and shape gets the same numbers whatever the mechanism.
Inputs random_inputs(const Mechanism& mechanism, std::uint64_t seed, double scale,
                     bool requires_grad);

/// Whether rotary positions mean something to a mechanism: it needs the roles "query" and "key", of
/// one width, and no latent stream, whose latents stand nowhere.
Support rotary_support(const Mechanism& mechanism);

/// One attention layer over x [B, T, C]; weights are seeded normals of variance 1/C.
///
/// Under autocast (attention/torch/autocast.hpp) its own products are narrow, and so are all inputs of
/// the mix, slices included. What is the mechanism's own, `before` and the mix, goes on outside of
/// it: `before` in the tokens' own type, the mix as it does with inputs of that type anywhere.
class Layer : public torch::nn::Module {
 public:
  Layer(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation, Scope scope,
        std::uint64_t seed);

  /// From now on what fills "query" and "key" is turned to its tokens' positions
  /// (attention/algorithms/tokens/rotary.hpp), which go on where a state's end. Throws UnsupportedError with
  /// the reason of rotary_support.
  void use_rotary_positions();

  /// x: query tokens [B, T, C]; memory: key tokens [B, S, C], x itself unless the pattern is cross.
  /// latents: the stream [B, L, C] for mechanisms that have one. Scope `projected` returns
  /// [B, H, T, Dv]; `layer` returns [B, T, C].
  Mixed forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& key_mask = {},
                const at::Tensor& latents = {}, State* state = nullptr);
  /// Only the filling of the roles. Roles fed by `before` must all have x as their source, and a
  /// state carries what `before` keeps from token to token.
  Inputs project(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& latents = {},
                 State* state = nullptr);

  Mechanism& mechanism() { return *mechanism_; }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  Implementation implementation_;
  Scope scope_;
  bool rotary_ = false;
  std::map<std::string, at::Tensor> weights_;
  at::Tensor out_weight_;
};

}  // namespace attnbench
