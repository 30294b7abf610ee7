#include "attention/layer.hpp"

#include <ATen/CPUGeneratorImpl.h>

#include <cmath>
#include <stdexcept>

namespace attnbench {
namespace {

/// FNV-1a over the seed, a name and sizes: what is drawn depends on nothing else.
std::uint64_t seed_of(std::uint64_t seed, const std::string& name,
                      const std::vector<std::int64_t>& shape) {
  std::uint64_t hash = 14695981039346656037ull;
  const auto take = [&](std::uint64_t value) {
    for (int byte = 0; byte < 8; ++byte) {
      hash = (hash ^ ((value >> (8 * byte)) & 0xff)) * 1099511628211ull;
    }
  };
  take(seed);
  for (const char c : name) take(static_cast<unsigned char>(c));
  for (const auto size : shape) take(static_cast<std::uint64_t>(size));
  return hash;
}

/// Drawn in float32 on the CPU, so that every dtype and device sees the same numbers.
at::Tensor normal(std::uint64_t seed, const std::string& name,
                  const std::vector<std::int64_t>& shape, double deviation,
                  const Problem& problem) {
  const auto generator = at::detail::createCPUGenerator(seed_of(seed, name, shape));
  return at::randn(shape, generator, at::kFloat)
      .mul_(deviation)
      .to(at::Device(problem.device), scalar_type(problem.dtype));
}

std::int64_t heads_of(const Role& role, const Problem& problem) {
  return role.source == Source::key_tokens ? problem.kv_heads : problem.heads;
}

std::int64_t tokens_of(const Role& role, const Mechanism& mechanism) {
  if (role.source == Source::query_tokens) return mechanism.problem.length;
  if (role.source == Source::key_tokens) return mechanism.problem.key_length;
  return mechanism.options.integer("latents_per_head");
}

/// [B, T, H * w] as [B, H, T, w], without a copy.
at::Tensor split_heads(const at::Tensor& x, std::int64_t heads) {
  return x.view({x.size(0), x.size(1), heads, x.size(2) / heads}).transpose(1, 2);
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
    const Problem& problem = mechanism.problem;
    const std::vector<std::int64_t> shape{problem.batch, heads_of(role, problem),
                                          tokens_of(role, mechanism), role.width};
    inputs.tensors[role.name] =
        normal(seed, role.name, shape, scale, problem).requires_grad_(requires_grad);
  }
  return inputs;
}

Layer::Layer(std::shared_ptr<Mechanism> mechanism, const Implementation& implementation,
             Scope scope, std::uint64_t seed)
    : torch::nn::Module("layer"),
      mechanism_(register_module("mechanism", std::move(mechanism))),
      implementation_(implementation),
      scope_(scope) {
  if (scope == Scope::mix) throw std::logic_error("a layer projects: its scope cannot be mix");
  const Problem& problem = mechanism_->problem;
  const std::int64_t width = problem.width();
  const auto weight = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    return register_parameter(
        "weight_" + name,
        normal(seed, name, {rows, columns}, 1 / std::sqrt(static_cast<double>(rows)), problem),
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

Inputs Layer::project(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& latents) {
  Inputs inputs;
  for (const Role& role : mechanism_->roles()) {
    at::Tensor tokens = role.source == Source::query_tokens ? x
                        : role.source == Source::key_tokens ? memory
                                                            : latents;
    if (!tokens.defined()) {
      throw std::logic_error("the role " + role.name + " of " + mechanism_->name() +
                             " needs tokens that were not given");
    }
    if (role.feed == Feed::before) tokens = mechanism_->before(role, tokens);
    if (role.feed != Feed::slice) tokens = at::matmul(tokens, weights_.at(role.name));
    inputs.tensors[role.name] = split_heads(tokens, heads_of(role, mechanism_->problem));
  }
  return inputs;
}

Mixed Layer::forward(const at::Tensor& x, const at::Tensor& memory, const at::Tensor& key_mask,
                     const at::Tensor& latents, State* state) {
  Inputs inputs = project(x, memory, latents);
  inputs.key_mask = key_mask;
  Mixed mixed = implementation_.mix(*mechanism_, inputs, state);
  if (scope_ == Scope::layer) {
    const auto tokens = mixed.output.transpose(1, 2).flatten(2);
    mixed.output = at::matmul(tokens, out_weight_);
  }
  return mixed;
}

}  // namespace attnbench
