#include "attention/layer.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "attention/algorithms/tokens/token_mix.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/torch/autocast.hpp"
#include "attention/torch/draw.hpp"

namespace attnbench {
namespace {

std::int64_t heads_of(const Role& role, const Problem& problem) {
  return role.source == Source::key_tokens ? problem.kv_heads : problem.heads;
}

/// [B, T, H * w] as [B, H, T, w], without a copy.
at::Tensor split_heads(const at::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
}

/// Su et al. 2021, section 3.2.2.
constexpr double rotary_base = 10000;

/// In the dtype of the product, which may be narrower than the bias's own.
at::Tensor plus(const at::Tensor& product, const at::Tensor& bias) {
  return bias.defined() ? product + bias.to(product.scalar_type()) : product;
}

/// The last `width` numbers of each head rotated to the positions from `first` on.
at::Tensor rotated_tail(const at::Tensor& x, std::int64_t width, std::int64_t first) {
  const std::int64_t before = x.size(3) - width;
  if (before == 0) return rotated(x, first, rotary_base, Rotation::forward);
  const at::Tensor tail =
      rotated(x.narrow(3, before, width), first, rotary_base, Rotation::forward);
  return at::cat({x.narrow(3, 0, before), tail}, 3);
}

constexpr std::pair<const char*, Scope> scopes[] = {
    {"mix", Scope::mix}, {"projected", Scope::projected}, {"layer", Scope::layer}};

}  // namespace

const char* to_string(Scope scope) {
  for (const auto& [word, value] : scopes) {
    if (value == scope) return word;
  }
  throw std::logic_error("scope out of range");
}

Scope scope_from(const std::string& word) {
  for (const auto& [known, value] : scopes) {
    if (word == known) return value;
  }
  throw UsageError("scope must be one of mix, projected, layer, not \"" + word + "\"");
}

Inputs random_inputs(const Mechanism& mechanism, std::uint64_t seed, double scale,
                     bool requires_grad) {
  Inputs inputs;
  for (const Role& role : mechanism.roles()) {
    inputs.tensors[role.name] =
        draw_normal_in_place(seed, role.name, mechanism.shape_of(role), scale, mechanism.problem)
            .requires_grad_(requires_grad);
  }
  return inputs;
}

std::vector<RotatedPart> rotated_parts(const Mechanism& mechanism) {
  const std::vector<Role> roles = mechanism.roles();
  const auto decoupled = std::find_if(roles.begin(), roles.end(),
                                      [](const Role& role) { return role.name == "key_rotary"; });
  std::vector<RotatedPart> parts;
  for (const Role& role : roles) {
    if (role.name == "query") {
      parts.push_back({role.name, decoupled == roles.end() ? role.width : decoupled->width});
    } else if (role.name == (decoupled == roles.end() ? "key" : "key_rotary")) {
      parts.push_back({role.name, role.width});
    }
  }
  return parts;
}

Inputs with_rotary_positions(const std::vector<RotatedPart>& parts, Inputs inputs,
                             std::int64_t first) {
  for (const RotatedPart& part : parts) {
    at::Tensor& tensor = inputs.tensors.at(part.role);
    tensor = rotated_tail(tensor, part.width, first);
  }
  return inputs;
}

Support rotary_support(const Mechanism& mechanism) {
  for (const Role& role : mechanism.roles()) {
    if (role.source == Source::latent_stream) {
      return Support::no(mechanism.name() + ": its latents have no positions");
    }
  }
  const std::vector<RotatedPart> parts = rotated_parts(mechanism);
  if (parts.size() != 2 || parts[0].width != parts[1].width) {
    return Support::no(mechanism.name() +
                       ": rotary positions need a query and a key of one width; choose positions "
                       "none, learned or sinusoidal");
  }
  return {};
}

Support key_dim_support(const Mechanism& mechanism) {
  const Problem& problem = mechanism.problem;
  if (problem.width() == problem.heads * problem.head_dim) return {};
  bool found = false;
  bool projected = true;
  for (const Role& role : mechanism.roles()) {
    const bool matched = role.name == "query" || role.name == "key";
    if (matched && role.width == problem.head_dim) found = true;
    if (role.feed != Feed::projected || role.source == Source::latent_stream) projected = false;
  }
  if (found && projected) return {};
  return Support::no(mechanism.name() + ": key_dim " + std::to_string(problem.head_dim) +
                     " needs a query or key of that width and all inputs projected from the "
                     "tokens; leave key_dim out");
}

Layer::Layer(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
             Scope scope, std::uint64_t seed)
    : torch::nn::Module("layer"),
      mechanism_(register_module("mechanism", std::move(mechanism))),
      implementation_(implementation),
      scope_(scope) {
  if (scope == Scope::mix) throw std::logic_error("a layer projects: its scope cannot be mix");
  const Problem& problem = mechanism_->problem;
  if (const Support support = key_dim_support(*mechanism_); !support) {
    throw UnsupportedError(support.reason);
  }
  mechanism_->draw_parameters(seed);
  const std::int64_t width = problem.width();
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(
        "weight_" + name,
        draw_normal(seed, name, {rows, columns}, 1 / std::sqrt(static_cast<double>(rows)), problem),
        problem.gradient);
  };
  for (const Role& role : mechanism_->roles()) {
    if (role.feed == Feed::slice) {
      if (heads_of(role, problem) == problem.heads && role.width == problem.head_dim) continue;
      throw UnsupportedError(mechanism_->name() + ": the role " + role.name +
                             " takes slices of the tokens, so it needs as many key heads as "
                             "heads and the width head_dim");
    }
    weights_[role.name] = weight(role.name, width, heads_of(role, problem) * role.width);
  }
  if (scope == Scope::layer) {
    out_weight_ = weight("out", problem.heads * problem.value_dim, width);
  }
}

void Layer::use_rotary_positions() {
  const Support support = rotary_support(*mechanism_);
  if (!support) throw UnsupportedError(support.reason);
  rotated_ = rotated_parts(*mechanism_);
}

void Layer::use_projection_biases() {
  const auto bias = [&](const std::string& name, const at::Tensor& weight) {
    const auto numbers = weight.options().requires_grad(false);
    return register_parameter("bias_" + name, at::zeros({weight.size(1)}, numbers),
                              mechanism_->problem.gradient);
  };
  for (const auto& [role, weight] : weights_) biases_[role] = bias(role, weight);
  if (out_weight_.defined()) out_bias_ = bias("out", out_weight_);
}

at::Tensor Layer::before(const at::Tensor& x, State* state, const at::Tensor& key_mask) {
  const NoAutocast exact;
  auto* both = dynamic_cast<LooksAhead*>(mechanism_.get());
  return both != nullptr && both->looks_ahead() ? both->before_masked(x, key_mask)
                                                : mechanism_->before(x, state);
}

Inputs Layer::project(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& latents,
                      State* state, const at::Tensor& key_mask) {
  Inputs inputs;
  inputs.key_mask = key_mask;
  const at::ScalarType type = product_type(x);  // slices included: a mix has inputs of one dtype
  at::Tensor fed;                               // once for all roles: it may update the state
  for (const Role& role : mechanism_->roles()) {
    at::Tensor tokens = role.source == Source::query_tokens ? x
                        : role.source == Source::key_tokens ? memory
                                                            : latents;
    if (!tokens.defined()) {
      throw std::logic_error("the role " + role.name + " of " + mechanism_->name() +
                             " needs tokens, but got none");
    }
    if (role.feed == Feed::before) {
      if (!fed.defined()) fed = before(tokens, state, key_mask);
      tokens = fed;
    }
    if (role.feed != Feed::slice) {
      tokens = at::matmul(tokens, weights_.at(role.name));
      if (!biases_.empty()) tokens = plus(tokens, biases_.at(role.name));
    }
    at::Tensor heads = split_heads(tokens.to(type), heads_of(role, mechanism_->problem));
    for (const RotatedPart& part : rotated_) {
      if (part.role != role.name) continue;
      const NoAutocast exact;
      heads = rotated_tail(heads, part.width, state ? state->position : 0);
    }
    inputs.tensors[role.name] = std::move(heads);
  }
  return inputs;
}

Mixed Layer::forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& key_mask,
                     const at::Tensor& latents, State* state) {
  const Inputs inputs = project(x, memory, latents, state, key_mask);
  Mixed mixed = [&] {
    const NoAutocast exact;
    return implementation_.mix(*mechanism_, inputs, state);
  }();
  if (scope_ == Scope::layer) {
    const auto tokens = mixed.output.transpose(1, 2).flatten(2);
    mixed.output = plus(at::matmul(tokens, out_weight_), out_bias_);
  }
  return mixed;
}

}  // namespace attnbench
