#include "attention/script/script_module.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

namespace attnbench::script {
namespace {

using c10::IValue;

/// TorchScript's message begins with the place in the code; its last line is the reason.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return text;
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

bool is(const c10::Argument& argument, c10::TypeKind kind) {
  return argument.type()->kind() == kind;
}

OptionType option_type(const c10::Argument& argument) {
  if (is(argument, c10::TypeKind::IntType)) return OptionType::integer;
  if (is(argument, c10::TypeKind::FloatType)) return OptionType::number;
  return is(argument, c10::TypeKind::BoolType) ? OptionType::boolean : OptionType::text;
}

OptionValue option_value(const IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  return value.toStringRef();
}

bool is_option(const c10::Argument& argument) {
  return is(argument, c10::TypeKind::IntType) || is(argument, c10::TypeKind::FloatType) ||
         is(argument, c10::TypeKind::BoolType) || is(argument, c10::TypeKind::StringType);
}

/// The purpose of one argument of `forward` or `step`.
Argument argument_of(const ScriptDescription& said, const c10::Argument& argument) {
  const std::string& name = argument.name();
  if (name == "key_mask") return {name, Wants::key_mask};
  if (name == "causal" && is(argument, c10::TypeKind::BoolType)) return {name, Wants::causal};
  if (name == "state") return {name, Wants::state};
  if (is(argument, c10::TypeKind::TensorType)) {
    if (name == "query" || name == "key" || name == "value" || said.roles.count(name) != 0) {
      return {name, Wants::role};
    }
    refuse(said.module_file,
           "its argument " + name +
               " is not one of query, key and value: describe it under \"roles\"");
  }
  if (is_option(argument) && argument.default_value()) {
    return {name, Wants::option, *argument.default_value()};
  }
  refuse(said.module_file, "its argument " + name + " of type " +
                               argument.type()->annotation_str() +
                               " is neither a tensor nor an option (int, float, bool or str) with "
                               "a default");
}

std::int64_t width_of(const std::string& word, const Problem& problem) {
  if (word == "head_dim") return problem.head_dim;
  return word == "value_dim" ? problem.value_dim : std::stoll(word);
}

}  // namespace

void refuse(const std::string& file, const std::string& why) {
  throw PluginError("plugin " + file + " is refused: " + why);
}

std::vector<Argument> arguments_of(const ScriptDescription& said, const JitModule& module,
                                   const std::string& method) {
  std::vector<Argument> arguments;
  const c10::FunctionSchema& schema = module.get_method(method).function().getSchema();
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // 0 is self
    arguments.push_back(argument_of(said, schema.arguments()[i]));
  }
  return arguments;
}

std::vector<Option> options_of(const ScriptDescription& said, const JitModule& module) {
  std::vector<Option> options;
  for (const c10::Argument& argument :
       module.get_method("forward").function().getSchema().arguments()) {
    if (argument.name() == "causal" || !is_option(argument)) continue;
    const auto meaning = said.option_meanings.find(argument.name());
    options.push_back({argument.name(), option_type(argument),
                       option_value(*argument.default_value()),
                       meaning == said.option_meanings.end() ? "of the module" : meaning->second});
  }
  return options;
}

bool wants(const std::vector<Argument>& arguments, Wants what) {
  for (const Argument& argument : arguments) {
    if (argument.wants == what) return true;
  }
  return false;
}

Role role_of(const ScriptDescription& said, const std::string& name, const Problem& problem) {
  const auto described = said.roles.find(name);
  if (described != said.roles.end()) {
    return {name, described->second.source, width_of(described->second.width, problem)};
  }
  const bool query = name == "query";
  return {name, query ? Source::query_tokens : Source::key_tokens,
          name == "value" ? problem.value_dim : problem.head_dim};
}

JitModule load(const std::string& file) {
  try {
    JitModule module = torch::jit::load(file, at::Device(at::kCPU));
    module.eval();
    return module;
  } catch (const std::exception& error) {
    const std::string what = error.what();
    refuse(file, "it is no TorchScript module that this LibTorch can read: " +
                     what.substr(0, what.find('\n')));
  }
}

IValue call(const std::string& file, const JitModule& module, const std::string& method,
            std::vector<IValue> arguments) {
  try {
    return module.get_method(method)(std::move(arguments));
  } catch (const std::exception& error) {
    const std::string what = error.what();
    if (what.find("std::bad_alloc") != std::string::npos) throw std::bad_alloc();
    throw std::runtime_error(file + ": " + last_line(what) + "\n" + what);
  }
}

std::vector<IValue> stack_of(const std::vector<Argument>& arguments, const Options& options,
                             const Problem& problem, const Inputs& inputs, const IValue& state) {
  std::vector<IValue> stack;
  for (const Argument& argument : arguments) {
    switch (argument.wants) {
      case Wants::role:
        stack.emplace_back(inputs[argument.name]);
        break;
      case Wants::key_mask:
        stack.push_back(inputs.key_mask.defined() ? IValue(inputs.key_mask) : IValue());
        break;
      case Wants::causal:
        stack.emplace_back(problem.pattern == Pattern::causal);
        break;
      case Wants::state:
        stack.push_back(state);
        break;
      case Wants::option:
        stack.push_back(argument.fallback);
        if (!options.has(argument.name)) break;  // a reference may have options of its own
        std::visit(
            [&](const auto& value) {
              if constexpr (!std::is_same_v<std::decay_t<decltype(value)>, Window>) {
                stack.back() = IValue(value);
              }
            },
            options.values().at(argument.name));
    }
  }
  return stack;
}

std::map<std::string, at::Tensor> tensors_of(const JitModule& module, bool parameters) {
  std::map<std::string, at::Tensor> tensors;
  const auto keep = [&](std::string name, const at::Tensor& tensor) {
    std::replace(name.begin(), name.end(), '.', '_');
    tensors[name] = tensor;
  };
  if (parameters) {
    for (const auto& item : module.named_parameters()) keep(item.name, item.value);
  } else {
    for (const auto& item : module.named_buffers()) keep(item.name, item.value);
  }
  return tensors;
}

JitModule converted(const JitModule& module, at::ScalarType type, const std::string& device) {
  const at::NoGradGuard no_grad;
  JitModule copy = module.deepcopy();
  for (const bool parameters : {true, false}) {
    const auto before = tensors_of(module, parameters);
    for (auto& [name, tensor] : tensors_of(copy, parameters)) {
      at::Tensor mine = tensor;
      mine.set_data(tensor.is_floating_point() ? tensor.to(at::Device(device), type)
                                               : tensor.to(at::Device(device)));
      if (parameters) mine.set_requires_grad(before.at(name).requires_grad());
    }
  }
  return copy;
}

}  // namespace attnbench::script
