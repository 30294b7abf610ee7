// Layer: fills a mechanism's roles from tokens, mixes, and projects the output back to tokens.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"

namespace attnbench {

/// The parts that are computed: the mix; also the input projections; also the output projection.
enum class Scope { mix, projected, layer };

const char* to_string(Scope scope);
Scope scope_from(const std::string& word);

/// Random inputs of `mix`: normal with standard deviation `scale`, one tensor per role in the
/// problem's dtype. The numbers depend only on the seed, the role's name and its shape, not on the
/// mechanism.
Inputs random_inputs(const Mechanism& mechanism, std::uint64_t seed, double scale,
                     bool requires_grad);

/// What rotary positions rotate: the last `width` numbers of each head of a role.
struct RotatedPart {
  std::string role;
  std::int64_t width = 0;
};
/// All numbers of "query" and "key"; of a mechanism with the role "key_rotary" that role's, and as
/// many of each query (decoupled rotary positions, DeepSeek-V2, section 2.1.3).
std::vector<RotatedPart> rotated_parts(const Mechanism& mechanism);

/// The parts of `inputs` rotated to their tokens' positions from `first` on, with the angles of
/// Su et al. 2021, section 3.2.2 (attention/algorithms/tokens/tokens.hpp); other roles as they are.
Inputs with_rotary_positions(const std::vector<RotatedPart>& parts, Inputs inputs,
                             std::int64_t first);

/// Whether a mechanism supports rotary positions: it needs two parts to rotate of one width, and no
/// latent stream, whose latents have no positions.
Support rotary_support(const Mechanism& mechanism);

/// Whether it can have queries and keys that are wider or narrower than a head's share of the
/// tokens: they must be projected from the tokens, and nothing else taken from them.
Support key_dim_support(const Mechanism& mechanism);

/// One attention layer over x [B, T, C]; weights are seeded normals of variance 1/C.
///
/// Under autocast (attention/torch/autocast.hpp) its own products and all inputs of the mix, slices
/// included, are in the narrow dtype. `Mechanism::before` and the mix run outside autocast:
/// `before` in the tokens' dtype, the mix in the dtype of its inputs.
class Layer : public torch::nn::Module {
 public:
  Layer(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation, Scope scope,
        std::uint64_t seed);

  /// Rotates `rotated_parts` to their tokens' positions, which continue those of a state. Throws
  /// UnsupportedError with the reason of rotary_support.
  void use_rotary_positions();

  /// Adds a bias, 0 at first, to the projection of every role and to that of the output.
  void use_projection_biases();

  /// x: query tokens [B, T, C]; memory: key tokens [B, S, C], x itself unless the pattern is cross;
  /// latents: the stream [B, L, C] of mechanisms that have one. Scope `projected` returns
  /// [B, H, T, Dv], `layer` returns [B, T, C].
  Mixed forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& key_mask = {},
                const at::Tensor& latents = {}, State* state = nullptr);
  /// Fills the roles only, and passes the mask on. All roles fed by `before` must have x as their
  /// source; a state holds the tensors of `before`.
  Inputs project(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& latents = {},
                 State* state = nullptr, const at::Tensor& key_mask = {});

  Mechanism& mechanism() { return *mechanism_; }

 private:
  std::shared_ptr<Mechanism> mechanism_;
  Implementation implementation_;
  Scope scope_;
  std::vector<RotatedPart> rotated_;  ///< empty without rotary positions
  at::Tensor before(const at::Tensor& x, State* state, const at::Tensor& key_mask);

  std::map<std::string, at::Tensor> weights_;
  std::map<std::string, at::Tensor> biases_;  ///< by role; empty without biases
  at::Tensor out_weight_;
  at::Tensor out_bias_;
};

}  // namespace attnbench
