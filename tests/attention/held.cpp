#include "tests/attention/held.hpp"

#include <algorithm>
#include <limits>

#include "attention/torch/draw.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench::test {
namespace {

reference::Array array_of(const at::Tensor& tensor) {
  const at::Tensor dense = tensor.to(at::kDouble).contiguous();
  const double* begin = dense.data_ptr<double>();
  return {dense.sizes().vec(), {begin, begin + dense.numel()}};
}

Dtype dtype_of(at::ScalarType type) {
  for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == type) return dtype;
  }
  return Dtype::float64;
}

const std::string kParameter = "parameter ";

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

Held::Held(const std::string& mechanism, Problem sizes, const Said& said, double scale)
    : problem(std::move(sizes)),
      entry(registry().entry(mechanism)),
      reference_(registry().reference(mechanism)) {
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

Inputs Held::typed(at::ScalarType type, bool requires_grad) const {
  Inputs copy;
  copy.key_mask = inputs.key_mask;
  for (const auto& [name, tensor] : inputs.tensors) {
    copy.tensors[name] = tensor.detach().clone().to(type).requires_grad_(requires_grad);
  }
  return copy;
}

std::shared_ptr<Mechanism> Held::made(at::ScalarType type) const {
  Problem typed_problem = problem;
  typed_problem.dtype = dtype_of(type);
  typed_problem.gradient = true;
  auto mechanism = entry.make(options, typed_problem);
  const at::NoGradGuard no_grad;
  for (auto& item : mechanism->named_parameters()) item.value().copy_(parameters.at(item.key()));
  for (auto& item : mechanism->named_buffers()) item.value().copy_(parameters.at(item.key()));
  return mechanism;
}

at::Tensor Held::output(const std::string& implementation, at::ScalarType type) const {
  const at::NoGradGuard no_grad;
  const auto& mix = entry.implementation(implementation).mix;
  return mix(*made(type), typed(type, false), nullptr).output.to(at::kDouble);
}

State Held::empty_state(at::ScalarType type) const {
  return made(type)->empty_state(problem.batch, problem.length, at::TensorOptions(type));
}

at::Tensor Held::step(const std::string& implementation, State& state, std::int64_t begin,
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

std::map<std::string, at::Tensor> Held::gradients(const std::string& implementation,
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
      gradients[kParameter + item.key()] = item.value().grad().to(at::kDouble);
    }
  }
  return gradients;
}

at::Tensor Held::expected() const {
  reference::ReferenceInputs given;
  for (const auto& [name, tensor] : inputs.tensors) given.roles[name] = array_of(tensor);
  for (const auto& [name, tensor] : parameters) given.parameters[name] = array_of(tensor);
  if (inputs.key_mask.defined()) {
    const at::Tensor mask = inputs.key_mask.contiguous();
    const bool* begin = mask.data_ptr<bool>();
    given.key_mask.assign(begin, begin + mask.numel());
  }
  std::vector<reference::RowIndex> rows;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.heads; ++h) {
      for (std::int64_t t = 0; t < problem.length; ++t) rows.push_back({b, h, t});
    }
  }
  const std::vector<double> values = reference_(options, problem, given, rows);
  return at::tensor(values, at::kDouble).view(upstream.sizes());
}

double Held::slope(const std::string& role, const at::Tensor& direction) const {
  constexpr double kStep = 1e-5;
  Held shifted = *this;
  const bool of_parameter = role.rfind(kParameter, 0) == 0;
  at::Tensor& moved = of_parameter ? shifted.parameters.at(role.substr(kParameter.size()))
                                   : shifted.inputs.tensors.at(role);
  const at::Tensor here = moved;
  moved = here + kStep * direction;
  const at::Tensor above = shifted.expected();
  moved = here - kStep * direction;
  return ((above - shifted.expected()) * upstream).sum().item<double>() / (2 * kStep);
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

std::vector<std::pair<std::int64_t, std::int64_t>> odd_sizes(std::int64_t chunk) {
  return {{1, 43}, {3, 1}, {chunk, 7}, {133, 43}};
}

void check_outputs(const Held& held, const std::vector<std::string>& implementations,
                   double float32_error) {
  const at::Tensor expected = held.expected();
  for (const auto& name : implementations) {
    CAPTURE(name, held.problem.length, held.problem.head_dim);
    CHECK(relative_error(held.output(name), expected) < 1e-12);
    CHECK(relative_error(held.output(name, at::kFloat), expected) < float32_error);
  }
}

void check_gradients(const Held& held, const std::string& implementation, double margin) {
  const auto gradients = held.gradients(implementation);
  CHECK_FALSE(gradients.empty());
  for (const auto& [role, gradient] : gradients) {
    CAPTURE(implementation, role);
    const at::Tensor direction = at::randn_like(gradient);
    const double slope = held.slope(role, direction);
    // What slopes along random directions usually are: one may be small by chance alone.
    const double usual = gradient.norm().item<double>();
    CHECK((gradient * direction).sum().item<double>() ==
          Approx(slope).epsilon(1e-6).margin(std::max(margin, 1e-7 * usual)));
  }
}

void check_steps(const Held& held, const std::vector<std::string>& implementations,
                 const std::vector<std::int64_t>& prefills) {
  const std::int64_t all = held.problem.length;
  const at::Tensor whole = held.expected();
  for (const auto& prefill : implementations) {
    for (const auto& next : implementations) {
      for (const std::int64_t length : prefills) {
        CAPTURE(prefill, next, length);
        State state = held.empty_state();
        held.step(prefill, state, 0, length);
        State branch = state.clone();
        const at::Tensor token = held.step(next, branch, length, length + 1);
        const at::Tensor block = held.step(next, branch, length + 1, all);
        CHECK(relative_error(at::cat({token, block}, 2), whole.slice(2, length, all)) < 1e-12);
        CHECK(branch.position == all);
        CHECK(state.position == length);
      }
    }
  }
}

void check_padding(const Held& held, const std::string& implementation, const Padding& padding) {
  CAPTURE(implementation, to_string(held.problem.pattern));
  Held clean = held;
  clean.inputs.key_mask = at::ones({2, held.problem.key_length}, at::kBool);
  clean.inputs.key_mask[0].slice(0, padding.begin, padding.end).fill_(false);
  clean.inputs.key_mask[1].fill_(false);
  Held spoiled = clean;
  const auto own = [&](const std::string& role) -> at::Tensor& {
    at::Tensor& tensor = spoiled.inputs.tensors.at(role);
    return tensor = tensor.clone();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const auto& role : padding.roles) {
    at::Tensor& tensor = own(role);
    tensor[0].slice(1, padding.begin, padding.end).fill_(nan);
    tensor[1].fill_(nan);
  }
  for (const auto& role : padding.in_second_only) own(role)[1].fill_(nan);

  const at::Tensor output = spoiled.output(implementation);
  CHECK(relative_error(output, clean.expected()) < 1e-12);
  CHECK(output[1].abs().max().item<double>() == 0);
  const auto expected = clean.gradients(implementation);
  for (const auto& [role, gradient] : spoiled.gradients(implementation)) {
    CAPTURE(role);
    CHECK(relative_error(gradient, expected.at(role)) < 1e-12);
    if (role.rfind("parameter", 0) != 0) CHECK(gradient[1].abs().max().item<double>() == 0);
  }
}

}  // namespace attnbench::test
