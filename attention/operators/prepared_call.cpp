#include "attention/operators/prepared_call.hpp"

#include <mutex>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "attention/shape_inference.hpp"
#include "core/option_json.hpp"

namespace attnbench::operators {
namespace {

using Json = nlohmann::json;

/// More prepared calls than this are forgotten all at once: shapes that never come back must not
/// fill the memory.
constexpr std::size_t max_prepared = 4096;

CallText read(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object()) throw UsageError("the text of the call is no JSON object");
  CallText call;
  call.resolved = registry().resolve(json.at("mechanism").get<std::string>());
  call.options = call.resolved.options;
  for (const auto& [name, value] : json.at("options").items()) {
    call.options[name] = value_from(value, name);
  }
  const std::string word = json.at("implementation").get<std::string>();
  call.implementation = word == "auto" ? call.resolved.implementation : word;
  call.pattern = pattern_from(json.at("pattern").get<std::string>());
  call.roles = json.at("roles").get<std::vector<std::string>>();
  call.weights = json.at("weights").get<std::vector<std::string>>();
  return call;
}

Dtype dtype_of(const at::Tensor& tensor, const std::string& what) {
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == tensor.scalar_type()) return dtype;
  }
  throw UsageError(what + " is " + c10::toString(tensor.scalar_type()) +
                   "; expected float32, float64, bfloat16 or float16");
}

/// Refuses what no mechanism takes.
void require_tensors(const CallText& text, const Arguments& arguments) {
  if (arguments.inputs.size() != text.roles.size() || arguments.inputs.empty()) {
    throw UsageError(std::to_string(arguments.inputs.size()) + " inputs; expected " +
                     std::to_string(text.roles.size()) + ": " + word_list(text.roles));
  }
  if (arguments.weights.size() != text.weights.size()) {
    throw UsageError(std::to_string(arguments.weights.size()) + " weights; expected " +
                     std::to_string(text.weights.size()));
  }
  const at::Tensor& first = arguments.inputs[0];
  for (std::size_t i = 0; i < text.roles.size(); ++i) {
    const at::Tensor& tensor = arguments.inputs[i];
    const std::string& role = text.roles[i];
    const std::string sizes = arrays::to_string(tensor.sizes().vec());
    if (tensor.dim() != 4) {
      throw UsageError(role + " is " + sizes + ", of " + std::to_string(tensor.dim()) +
                       " dimensions; expected [batch, heads, tokens, width]");
    }
    if (tensor.numel() == 0) throw UsageError(role + " is " + sizes + ", which is empty");
    dtype_of(tensor, role);
    if (tensor.scalar_type() != first.scalar_type() || tensor.device() != first.device()) {
      throw UsageError(role + " is " + c10::toString(tensor.scalar_type()) + " on " +
                       tensor.device().str() + ", but " + text.roles[0] + " is " +
                       c10::toString(first.scalar_type()) + " on " + first.device().str() +
                       "; expected one dtype and one device");
    }
    if (tensor.size(0) != first.size(0)) {
      throw UsageError(role + " is " + sizes + " and " + text.roles[0] + " is " +
                       arrays::to_string(first.sizes().vec()) + "; expected one batch size");
    }
  }
  const at::Tensor& mask = arguments.key_mask;
  if (mask.defined() && (mask.dim() != 2 || mask.scalar_type() != at::kBool)) {
    throw UsageError(std::string("key_mask is ") + c10::toString(mask.scalar_type()) + " " +
                     arrays::to_string(mask.sizes().vec()) +
                     "; expected bool [batch, key tokens], true for real tokens");
  }
}

arrays::InputArrays shapes_of(const CallText& text, const Arguments& arguments) {
  arrays::InputArrays arrays;
  const auto shape = [](const std::string& name, const at::Tensor& tensor) {
    const bool wide = tensor.scalar_type() == at::kDouble;
    return arrays::ArrayFile{name, wide ? arrays::Element::float64 : arrays::Element::float32,
                             tensor.sizes().vec()};
  };
  for (std::size_t i = 0; i < text.roles.size(); ++i) {
    arrays.roles[text.roles[i]] = shape(text.roles[i], arguments.inputs[i]);
  }
  for (std::size_t i = 0; i < text.weights.size(); ++i) {
    arrays.parameters[text.weights[i]] = shape(text.weights[i], arguments.weights[i]);
  }
  return arrays;
}

std::shared_ptr<const PreparedCall> made(const CallText& text, const Arguments& arguments,
                                         bool gradient) {
  require_tensors(text, arguments);
  const Entry& entry = *text.resolved.entry;
  const Inferred inferred =
      infer_shapes(entry, text.options, text.pattern, gradient, shapes_of(text, arguments));
  auto prepared = std::make_shared<PreparedCall>();
  prepared->text = &text;
  prepared->entry = &entry;
  prepared->problem = inferred.problem;
  prepared->problem.dtype = dtype_of(arguments.inputs[0], text.roles[0]);
  prepared->problem.device = arguments.inputs[0].device().str();
  const at::Tensor& mask = arguments.key_mask;
  if (mask.defined() &&
      (mask.size(0) != prepared->problem.batch || mask.size(1) != prepared->problem.key_length)) {
    throw UsageError("key_mask is " + arrays::to_string(mask.sizes().vec()) + "; expected [" +
                     std::to_string(prepared->problem.batch) + ", " +
                     std::to_string(prepared->problem.key_length) +
                     "], a truth for each key token");
  }
  prepared->options = inferred.options;
  prepared->implementation =
      Registry::choose(entry, text.implementation, prepared->options, prepared->problem)
          .implementation;
  if (gradient && !prepared->implementation->differentiable) {
    throw UnsupportedError(entry.name + "/" + prepared->implementation->name +
                           " has no gradient; pass tensors that need none, or another "
                           "implementation");
  }
  if (parameters_of(*inferred.mechanism).empty()) {
    prepared->shared = entry.make(prepared->options, prepared->problem);
  }
  return prepared;
}

void append(std::string& key, std::int64_t number) {
  key.append(reinterpret_cast<const char*>(&number), sizeof number);
}

std::string key_of(const std::string& text, const Arguments& arguments, bool gradient) {
  std::string key;
  key.reserve(text.size() + 256);
  key = text;
  append(key, gradient ? 1 : 0);
  for (const auto* tensors : {&arguments.inputs, &arguments.weights}) {
    for (const at::Tensor& tensor : *tensors) {
      append(key, static_cast<std::int64_t>(tensor.scalar_type()));
      append(key,
             (static_cast<std::int64_t>(tensor.device().type()) << 8) + tensor.device().index());
      append(key, tensor.dim());
      for (const std::int64_t size : tensor.sizes()) append(key, size);
    }
  }
  if (arguments.key_mask.defined()) {
    append(key, static_cast<std::int64_t>(arguments.key_mask.scalar_type()));
    for (const std::int64_t size : arguments.key_mask.sizes()) append(key, size);
  }
  return key;
}

}  // namespace

const Registry& registry() {
  static const Registry all = Registry::with_builtins();
  return all;
}

const CallText& parsed(const std::string& text) {
  static std::mutex lock;
  static std::unordered_map<std::string, CallText> known;
  const std::lock_guard guard(lock);
  const auto found = known.find(text);
  if (found != known.end()) return found->second;
  return known.emplace(text, read(text)).first->second;
}

std::shared_ptr<Mechanism> PreparedCall::mechanism(const Arguments& arguments) const {
  if (shared) return shared;
  std::map<std::string, at::Tensor> weights;
  for (std::size_t i = 0; i < text->weights.size(); ++i) {
    weights[text->weights[i]] = arguments.weights[i];
  }
  const GivenWeights given(std::move(weights));
  return entry->make(options, problem);
}

Inputs PreparedCall::inputs(const Arguments& arguments) const {
  Inputs inputs;
  for (std::size_t i = 0; i < text->roles.size(); ++i) {
    inputs.tensors.emplace(text->roles[i], arguments.inputs[i]);
  }
  inputs.key_mask = arguments.key_mask;
  return inputs;
}

std::shared_ptr<const PreparedCall> prepared_for(const std::string& text,
                                                 const Arguments& arguments, bool gradient) {
  static std::mutex lock;
  static std::unordered_map<std::string, std::shared_ptr<const PreparedCall>> known;
  const std::string key = key_of(text, arguments, gradient);
  {
    const std::lock_guard guard(lock);
    const auto found = known.find(key);
    if (found != known.end()) return found->second;
  }
  std::shared_ptr<const PreparedCall> prepared = made(parsed(text), arguments, gradient);
  const std::lock_guard guard(lock);
  if (known.size() >= max_prepared) known.clear();
  known.emplace(key, prepared);
  return prepared;
}

}  // namespace attnbench::operators
