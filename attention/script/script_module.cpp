#include "attention/script/script_module.hpp"

#include <algorithm>
#include <new>
#include <stdexcept>

namespace attnbench::script {

using c10::IValue;

namespace {

/// TorchScript's message begins with where it failed in the code; why is in its last line.
std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \n");
  if (end == std::string::npos) return text;
  const std::size_t begin = text.find_last_of('\n', end);
  return text.substr(begin == std::string::npos ? 0 : begin + 1,
                     end - (begin == std::string::npos ? 0 : begin + 1) + 1);
}

}  // namespace

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
