#include "attention/script/script.hpp"

#include <algorithm>
#include <limits>
#include <mutex>

#include "attention/entry_parts.hpp"
#include "attention/script/script_module.hpp"

namespace attnbench {
namespace {

using c10::IValue;
using script::Argument;
using script::call;
using script::converted;
using script::JitModule;
using script::load;
using script::refuse;
using script::role_of;
using script::stack_of;
using script::tensors_of;
using script::Wants;
using script::wants;

/// A module with its signature, read once and shared by all functions of the entry.
struct Script {
  ScriptDescription description;
  JitModule module;
  JitModule reference;
  bool own_reference = false;
  std::vector<Argument> arguments;
  std::vector<Argument> step_arguments;  ///< empty = it has no state
  std::vector<Option> options;
  std::mutex busy;  ///< of `reference`, whose parameters are set before each call
};
using Shared = std::shared_ptr<Script>;

class Scripted : public Mechanism {
 public:
  Scripted(Shared script, const Options& chosen, const Problem& sizes)
      : Mechanism(script->description.name, chosen, sizes),
        script_(std::move(script)),
        module_(converted(script_->module, scalar_type(sizes.dtype), sizes.device)) {
    for (const auto& [name, tensor] : tensors_of(module_, true)) {
      register_parameter(name, tensor, tensor.requires_grad());
    }
    for (const auto& [name, tensor] : tensors_of(module_, false)) register_buffer(name, tensor);
  }

  std::vector<Role> roles() const override {
    std::vector<Role> roles;
    for (const Argument& argument : script_->arguments) {
      if (argument.wants != Wants::role) continue;
      roles.push_back(role_of(script_->description, argument.name, problem));
    }
    return roles;
  }

  State empty_state(std::int64_t batch, std::int64_t capacity,
                    const at::TensorOptions& tensor) const override {
    if (script_->step_arguments.empty()) return Mechanism::empty_state(batch, capacity, tensor);
    const IValue made = call(script_->description.module_file, module_, "empty_state",
                             {batch, problem.heads, problem.head_dim, problem.value_dim});
    State state;
    for (const auto& item : made.toGenericDict()) {
      const at::Tensor one = item.value().toTensor();
      const bool exact = tensor.dtype() == at::kDouble && one.is_floating_point();
      state.tensors[item.key().toStringRef()] =
          one.to(tensor.device(), exact ? at::kDouble : one.scalar_type());
    }
    return state;
  }

  Mixed mix(const Inputs& inputs, State* state) {
    const ScriptDescription& said = script_->description;
    if (inputs.key_mask.defined() && !wants(script_->arguments, Wants::key_mask)) {
      throw UnsupportedError(said.name + ": its module takes no key_mask");
    }
    // Under autocast inputs are narrower than parameters; TorchScript cannot multiply different
    // dtypes.
    const at::ScalarType given = inputs.tensors.begin()->second.scalar_type();
    Inputs wide = inputs;
    for (auto& [role, tensor] : wide.tensors) tensor = tensor.to(scalar_type(problem.dtype));
    if (state == nullptr) {
      return {output_of(call(said.module_file, module_, "forward",
                             stack_of(script_->arguments, options, problem, wide, {})),
                        given),
              {}};
    }
    c10::Dict<std::string, at::Tensor> carried;
    for (const auto& [name, tensor] : state->tensors) carried.insert(name, tensor);
    const IValue both = call(said.module_file, module_, "step",
                             stack_of(script_->step_arguments, options, problem, wide, carried));
    for (const auto& item : both.toTupleRef().elements()[1].toGenericDict()) {
      (*state)[item.key().toStringRef()].copy_(item.value().toTensor());
    }
    state->position += inputs.tensors.begin()->second.size(2);
    return {output_of(both.toTupleRef().elements()[0], given), {}};
  }

 private:
  static at::Tensor output_of(const IValue& value, at::ScalarType type) {
    return value.toTensor().to(type);
  }

  Shared script_;
  JitModule module_;
};

at::Tensor tensor_of(const reference::Array& array) {
  const at::Tensor tensor = at::empty(array.shape, at::kDouble);
  std::copy(array.values.begin(), array.values.end(), tensor.data_ptr<double>());
  return tensor;
}

/// Sets the parameters of the reference that the call has under the same name and shape.
void set_parameters(const JitModule& module, const reference::ReferenceInputs& inputs) {
  for (const bool parameters : {true, false}) {
    for (auto& [name, tensor] : tensors_of(module, parameters)) {
      const auto given = inputs.parameters.find(name);
      if (given == inputs.parameters.end() || tensor.sizes() != given->second.shape) continue;
      at::Tensor mine = tensor;
      mine.copy_(tensor_of(given->second));
    }
  }
}

std::vector<double> reference_rows(const Shared& script, const Options& options,
                                   const Problem& problem, const reference::ReferenceInputs& given,
                                   const std::vector<reference::RowIndex>& rows) {
  const at::NoGradGuard no_grad;
  Inputs inputs;
  for (const auto& [name, array] : given.roles) inputs.tensors[name] = tensor_of(array);
  if (!given.key_mask.empty()) {
    inputs.key_mask = at::empty({problem.batch, problem.key_length}, at::kBool);
    std::copy(given.key_mask.begin(), given.key_mask.end(), inputs.key_mask.data_ptr<bool>());
  }
  const std::lock_guard one_at_a_time(script->busy);
  set_parameters(script->reference, given);
  const std::string& file =
      script->own_reference ? script->description.module_file : script->description.reference_file;
  const at::Tensor output =
      call(file, script->reference, "forward",
           stack_of(script::arguments_of(script->description, script->reference, "forward"),
                    options, problem, inputs, {}))
          .toTensor()
          .to(at::kDouble)
          .contiguous();
  const std::vector<std::int64_t> expected{problem.batch, problem.heads, problem.length,
                                           problem.value_dim};
  if (output.sizes() != expected) throw std::runtime_error(file + ": its output has another shape");
  std::vector<double> result;
  for (const auto& row : rows) {
    const double* values =
        output.data_ptr<double>() +
        ((row.b * problem.heads + row.h) * problem.length + row.t) * problem.value_dim;
    result.insert(result.end(), values, values + problem.value_dim);
  }
  return result;
}

/// Only inputs and output are known; all other numbers are NaN.
Cost cost_of(const Script& script, const Problem& problem) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  double width = static_cast<double>(problem.length * problem.value_dim);
  for (const Argument& argument : script.arguments) {
    if (argument.wants != Wants::role) continue;
    const Role role = role_of(script.description, argument.name, problem);
    const bool query = role.source == Source::query_tokens;
    width += static_cast<double>(role.width * (query ? problem.length : problem.key_length));
  }
  Cost cost;
  cost.minimal_bytes = static_cast<double>(problem.batch * problem.heads) * width *
                       static_cast<double>(bytes_of(problem.dtype));
  cost.model_flops = cost.executed_flops = cost.exponentials = unknown;
  cost.workspace_bytes = cost.saved_bytes = cost.state_bytes = unknown;
  return cost;
}

Shared read(const ScriptDescription& said) {
  auto script = std::make_shared<Script>();
  script->description = said;
  script->module = load(said.module_file);
  if (!script->module.find_method("forward")) refuse(said.module_file, "it has no forward");
  script->arguments = script::arguments_of(said, script->module, "forward");
  if (!wants(script->arguments, Wants::role))
    refuse(said.module_file, "its forward takes no tensor");
  if (said.patterns.empty() && !wants(script->arguments, Wants::causal)) {
    refuse(said.module_file,
           "its forward has no argument causal, so \"patterns\" must say what it computes");
  }
  if (script->module.find_method("step") && script->module.find_method("empty_state")) {
    script->step_arguments = script::arguments_of(said, script->module, "step");
  }
  script->options = script::options_of(said, script->module);
  script->own_reference = said.reference_file.empty();
  const JitModule definition = script->own_reference ? script->module : load(said.reference_file);
  script::arguments_of(said, definition, "forward");
  script->reference = converted(definition, at::kDouble, "cpu");
  return script;
}

}  // namespace

void add_script(const ScriptDescription& description, Registry& registry) {
  const Shared script = read(description);
  Entry entry;
  entry.name = description.name;
  entry.title =
      description.title.empty() ? "the module of " + description.module_file : description.title;
  entry.citation = description.citation;
  if (script->own_reference) {
    entry.citation += std::string(entry.citation.empty() ? "" : "; ") +
                      "compared with itself in double, since it has no reference module";
  }
  entry.options = script->options;
  entry.claims = description.claims;
  entry.patterns = description.patterns;
  if (entry.patterns.empty()) entry.patterns = {Pattern::bidirectional, Pattern::causal};
  entry.supports = [name = description.name](const Options&, const Problem& problem) {
    return unshared_heads(name, problem);
  };
  entry.make = [script](const Options& options, const Problem& problem) {
    return std::make_shared<Scripted>(script, options, problem);
  };
  entry.implementations = {
      {.name = "composite",
       .title = "TorchScript",
       .supports = entry.supports,
       .mix = [](Mechanism& mechanism, const Inputs& inputs,
                 State* state) { return static_cast<Scripted&>(mechanism).mix(inputs, state); },
       .cost = [script](const Options&,
                        const Problem& problem) { return cost_of(*script, problem); },
       .growth = description.growth}};
  registry.add(entry, [script](const Options& options, const Problem& problem,
                               const reference::ReferenceInputs& inputs,
                               const std::vector<reference::RowIndex>& rows) {
    return reference_rows(script, options, problem, inputs, rows);
  });
}

}  // namespace attnbench
