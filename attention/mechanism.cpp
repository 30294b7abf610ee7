#include "attention/mechanism.hpp"

#include <stdexcept>

namespace attnbench {

at::ScalarType scalar_type(Dtype dtype) {
  switch (dtype) {
    case Dtype::float32:
      return at::kFloat;
    case Dtype::float64:
      return at::kDouble;
    case Dtype::bfloat16:
      return at::kBFloat16;
    case Dtype::float16:
      return at::kHalf;
  }
  throw std::logic_error("dtype out of range");
}

const at::Tensor& Inputs::operator[](const std::string& role) const {
  const auto found = tensors.find(role);
  if (found == tensors.end()) throw std::logic_error("no input for the role " + role);
  return found->second;
}

std::int64_t State::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [name, tensor] : tensors) sum += static_cast<std::int64_t>(tensor.nbytes());
  return sum;
}

State State::clone() const {
  State copy;
  copy.position = position;
  for (const auto& [name, tensor] : tensors) copy.tensors[name] = tensor.clone();
  return copy;
}

at::Tensor& State::operator[](const std::string& name) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) throw std::logic_error("the state has no tensor " + name);
  return found->second;
}

std::vector<std::int64_t> Mechanism::shape_of(const Role& role) const {
  switch (role.source) {
    case Source::query_tokens:
      return {problem.batch, problem.heads, problem.length, role.width};
    case Source::key_tokens:
      return {problem.batch, problem.kv_heads, problem.key_length, role.width};
    case Source::latent_stream:
      break;
  }
  const std::int64_t latents =
      options.has("latents_per_head") ? options.integer("latents_per_head") : problem.head_dim;
  return {problem.batch, problem.heads, latents, role.width};
}

at::Tensor Mechanism::before(const at::Tensor&, State*) {
  throw std::logic_error(name() + " declares a role fed by `before` but does not define `before`");
}

void Mechanism::draw_parameters(std::uint64_t) {}

namespace {

thread_local const GivenWeights* given_weights = nullptr;

/// The weight that was given under this name, or null.
const at::Tensor* given_for(const std::string& mechanism, const std::string& name,
                            const at::Tensor& own) {
  const at::Tensor* const given = GivenWeights::find(name);
  if (given == nullptr) return nullptr;
  if (given->sizes() == own.sizes() && given->scalar_type() == own.scalar_type()) return given;
  const auto described = [](const at::Tensor& tensor) {
    return c10::str(c10::toString(tensor.scalar_type()), " ", tensor.sizes());
  };
  throw UsageError(mechanism + ": the weight " + name + " is " + described(*given) + "; expected " +
                   described(own));
}

}  // namespace

GivenWeights::GivenWeights(std::map<std::string, at::Tensor> weights)
    : weights_(std::move(weights)), before_(given_weights) {
  given_weights = this;
}

GivenWeights::~GivenWeights() { given_weights = before_; }

bool GivenWeights::any() { return given_weights != nullptr; }

const at::Tensor* GivenWeights::find(const std::string& name) {
  if (given_weights == nullptr) return nullptr;
  const auto found = given_weights->weights_.find(name);
  return found == given_weights->weights_.end() ? nullptr : &found->second;
}

at::Tensor& Mechanism::register_parameter(const std::string& parameter, const at::Tensor& own,
                                          bool requires_grad) {
  const at::Tensor* const given = given_for(name(), parameter, own);
  if (given == nullptr) {
    return torch::nn::Module::register_parameter(parameter, own, requires_grad);
  }
  return torch::nn::Module::register_parameter(parameter, *given, given->requires_grad());
}

at::Tensor& Mechanism::register_buffer(const std::string& buffer, const at::Tensor& own) {
  const at::Tensor* const given = given_for(name(), buffer, own);
  return torch::nn::Module::register_buffer(buffer, given == nullptr ? own : *given);
}

State Mechanism::empty_state(std::int64_t, std::int64_t, const at::TensorOptions&) const {
  throw UnsupportedError(name() + " has no decoding state");
}

const Implementation* Entry::find_implementation(const std::string& wanted) const {
  for (const auto& implementation : implementations) {
    if (implementation.name == wanted) return &implementation;
  }
  return nullptr;
}

const Implementation& Entry::implementation(const std::string& wanted) const {
  if (const auto* found = find_implementation(wanted)) return *found;
  std::vector<std::string> known;
  for (const auto& implementation : implementations) known.push_back(implementation.name);
  throw UsageError(name + " has no implementation " + wanted + did_you_mean(wanted, known) +
                   " There are: " + word_list(known));
}

}  // namespace attnbench
