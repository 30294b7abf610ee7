// Inputs of a trial, and running it.
#include <algorithm>
#include <random>

#include "attention/conformance/subject.hpp"

namespace attnbench::conformance {
namespace {

std::uint64_t mixed(std::uint64_t seed, const std::string& text) {
  for (const char c : text) seed = (seed ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return seed;
}

}  // namespace

at::Tensor normal(at::IntArrayRef shape, std::uint64_t seed) {
  at::Tensor tensor = at::empty(shape, at::kDouble);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> distribution;
  double* data = tensor.data_ptr<double>();
  for (std::int64_t i = 0; i < tensor.numel(); ++i) data[i] = distribution(random);
  return tensor;
}

at::Tensor normal_like(const at::Tensor& tensor, std::uint64_t seed) {
  return normal(tensor.sizes(), seed).to(tensor.scalar_type());
}

Inputs draw(const Trial& trial, std::uint64_t seed, double scale) {
  Inputs inputs;
  const auto type = scalar_type(trial.problem.dtype);
  for (const Role& role : trial.mechanism->roles()) {
    const at::Tensor values = normal(trial.mechanism->shape_of(role), mixed(seed, role.name));
    inputs.tensors[role.name] = (values * scale).to(type);
  }
  return inputs;
}

Inputs converted(const Inputs& inputs, at::ScalarType type) {
  Inputs out;
  out.key_mask = inputs.key_mask;
  for (const auto& [name, tensor] : inputs.tensors) out.tensors[name] = tensor.to(type);
  return out;
}

Inputs tokens(const Trial& trial, const Inputs& inputs, std::int64_t begin, std::int64_t count) {
  Inputs out = inputs;
  for (const Role& role : trial.mechanism->roles()) {
    if (role.source == Source::latent_stream) continue;
    out.tensors[role.name] = inputs[role.name].narrow(2, begin, count);
  }
  if (inputs.key_mask.defined()) out.key_mask = inputs.key_mask.narrow(1, begin, count);
  return out;
}

std::string value_role(const Trial& trial) {
  for (const Role& role : trial.mechanism->roles()) {
    if (role.name == "value") return role.name;
  }
  return {};
}

bool is_value(const Trial& trial, const Role& role) { return role.name == value_role(trial); }

Inputs placed(const Trial& trial, const Inputs& inputs) {
  const at::Device device(trial.problem.device);
  const auto place = [&device](const at::Tensor& tensor) {
    if (!tensor.defined() || tensor.device().type() == device.type()) return tensor;
    // Not `to`: it would close the gaps of a view, and layouts are under test too.
    const auto there = tensor.options().device(device).requires_grad(false);
    return at::empty_strided(tensor.sizes(), tensor.strides(), there).copy_(tensor);
  };
  Inputs out;
  out.key_mask = place(inputs.key_mask);
  for (const auto& [name, tensor] : inputs.tensors) out.tensors[name] = place(tensor);
  return out;
}

State empty_state(const Trial& trial) {
  const Problem& problem = trial.problem;
  return trial.mechanism->empty_state(
      problem.batch, problem.length,
      at::TensorOptions(scalar_type(problem.dtype)).device(at::Device(problem.device)));
}

at::Tensor mix(const Trial& trial, const Inputs& inputs, State* state) {
  const at::NoGradGuard no_grad;
  return trial.implementation->mix(*trial.mechanism, placed(trial, inputs), state).output.cpu();
}

Differentiated differentiate(const Trial& trial, const Inputs& inputs, const at::Tensor& upstream) {
  const Inputs there = placed(trial, inputs);
  Inputs leaves;
  leaves.key_mask = there.key_mask;
  for (const auto& [name, tensor] : there.tensors) {
    // Not a clone: it would close the gaps of a view, and layouts are under test too.
    leaves.tensors[name] = tensor.detach().requires_grad_(true);
  }
  for (auto& parameter : trial.mechanism->parameters()) parameter.mutable_grad().reset();
  Differentiated result;
  const at::Tensor output = trial.implementation->mix(*trial.mechanism, leaves, nullptr).output;
  output.backward(upstream.to(output.options().requires_grad(false)));
  result.output = output.detach().cpu();
  const auto take = [&result](const std::string& name, const at::Tensor& leaf) {
    // A role that the output does not depend on (the queries of a single latent) has no gradient.
    const at::Tensor gradient = leaf.grad().defined() ? leaf.grad().clone() : at::zeros_like(leaf);
    result.gradients[name] = gradient.detach().cpu();
  };
  for (const auto& [name, leaf] : leaves.tensors) take(name, leaf);
  for (const auto& item : trial.mechanism->named_parameters()) {
    if (item.value().requires_grad()) take("parameter " + item.key(), item.value());
  }
  return result;
}

std::vector<double> numbers(const at::Tensor& tensor) {
  const at::Tensor flat = tensor.detach().cpu().to(at::kDouble).contiguous();
  const double* data = flat.data_ptr<double>();
  return {data, data + flat.numel()};
}

}  // namespace attnbench::conformance
