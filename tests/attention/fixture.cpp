#include "tests/attention/fixture.hpp"

#include <limits>
#include <utility>

#include "attention/torch/draw.hpp"
#include "tests/support/registry.hpp"

namespace attnbench::test {
namespace {

Dtype dtype_of(at::ScalarType type) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == type) return dtype;
  }
  return Dtype::float64;
}

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, seeded_generator(seed, at::kCPU), at::kDouble);
}

}  // namespace

double relative_error(const at::Tensor& a, const at::Tensor& b) {
  if (!at::isfinite(a).all().item<bool>()) return std::numeric_limits<double>::infinity();
  const double size = b.norm().item<double>();
  const double difference = (a.to(at::kDouble) - b.to(at::kDouble)).norm().item<double>();
  return size == 0 ? difference : difference / size;
}

std::vector<std::string> implementations_of(const std::string& mechanism) {
  std::vector<std::string> names;
  for (const auto& each : registry().entry(mechanism).implementations) names.push_back(each.name);
  return names;
}

Fixture::Fixture(const std::string& mechanism, Problem sizes, const Overrides& said, double scale)
    : problem(std::move(sizes)), entry(registry().entry(mechanism)) {
  problem.kv_heads = problem.heads;
  if (problem.pattern != Pattern::cross) problem.key_length = problem.length;
  options = entry.derive(Options::resolve(entry.options, said), problem);
  Problem wide = problem;
  wide.dtype = Dtype::float64;
  wide.gradient = true;
  const auto module = entry.make(options, wide);
  for (const auto& item : module->named_parameters()) {
    parameters[item.key()] = item.value().detach().clone();
  }
  for (const auto& item : module->named_buffers()) {
    parameters[item.key()] = item.value().clone();
  }
  std::uint64_t seed = 1;
  for (const Role& role : module->roles()) {
    inputs.tensors[role.name] = scale * normal(module->shape_of(role), seed++);
  }
  upstream = normal({problem.batch, problem.heads, problem.length, problem.value_dim}, 99);
}

Inputs Fixture::typed(at::ScalarType type, bool requires_grad) const {
  Inputs copy;
  copy.key_mask = inputs.key_mask;
  for (const auto& [name, tensor] : inputs.tensors) {
    copy.tensors[name] = tensor.detach().clone().to(type).requires_grad_(requires_grad);
  }
  return copy;
}

std::shared_ptr<Mechanism> Fixture::made(at::ScalarType type) const {
  Problem typed_problem = problem;
  typed_problem.dtype = dtype_of(type);
  typed_problem.gradient = true;
  auto mechanism = entry.make(options, typed_problem);
  const at::NoGradGuard no_grad;
  for (auto& item : mechanism->named_parameters()) item.value().copy_(parameters.at(item.key()));
  for (auto& item : mechanism->named_buffers()) item.value().copy_(parameters.at(item.key()));
  return mechanism;
}

at::Tensor Fixture::output(const std::string& implementation, at::ScalarType type) const {
  const at::NoGradGuard no_grad;
  const auto& mix = entry.implementation(implementation).mix;
  return mix(*made(type), typed(type, false), nullptr).output.to(at::kDouble);
}

State Fixture::empty_state(at::ScalarType type) const {
  return made(type)->empty_state(problem.batch, problem.length, at::TensorOptions(type));
}

at::Tensor Fixture::step(const std::string& implementation, State& state, std::int64_t begin,
                         std::int64_t end, at::ScalarType type) const {
  const at::NoGradGuard no_grad;
  Inputs part = typed(type, false);
  const auto mechanism = made(type);
  for (const Role& role : mechanism->roles()) {
    if (role.source == Source::latent_stream) continue;
    at::Tensor& tensor = part.tensors.at(role.name);
    tensor = tensor.slice(2, begin, end);
  }
  if (part.key_mask.defined()) part.key_mask = part.key_mask.slice(1, begin, end);
  return entry.implementation(implementation).mix(*mechanism, part, &state).output.to(at::kDouble);
}

std::map<std::string, at::Tensor> Fixture::gradients(const std::string& implementation,
                                                     at::ScalarType type) const {
  const Inputs leaves = typed(type, true);
  const auto mechanism = made(type);
  const at::Tensor output =
      entry.implementation(implementation).mix(*mechanism, leaves, nullptr).output;
  torch::autograd::backward({output}, {upstream.to(type)});
  std::map<std::string, at::Tensor> gradients;
  for (const auto& [name, leaf] : leaves.tensors) gradients[name] = leaf.grad().to(at::kDouble);
  for (const auto& item : mechanism->named_parameters()) {
    if (item.value().requires_grad()) {
      gradients["parameter " + item.key()] = item.value().grad().to(at::kDouble);
    }
  }
  return gradients;
}

Problem two_by_two(std::int64_t length, std::int64_t width, Pattern pattern) {
  Problem problem;
  problem.batch = problem.heads = 2;
  problem.length = length;
  problem.key_length = pattern == Pattern::cross ? length + 7 : length;
  problem.head_dim = width;
  problem.value_dim = width + 2;
  problem.pattern = pattern;
  return problem;
}

}  // namespace attnbench::test
