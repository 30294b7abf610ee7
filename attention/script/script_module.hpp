// A TorchScript module in use: what its signature declares, loading it, calling it, its tensors,
// and a copy of it in another dtype or on another device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/script/script.hpp"
#include "attention/torch/torch.hpp"

namespace attnbench::script {

using JitModule = torch::jit::Module;

/// The purpose of one argument of `forward` or `step`.
enum class Wants { role, key_mask, causal, option, state };

struct Argument {
  std::string name;
  Wants wants = Wants::role;
  c10::IValue fallback = {};  ///< of an option
};

/// The arguments of an existing method, in order. Throws PluginError that names the file and the
/// first invalid argument.
std::vector<Argument> arguments_of(const ScriptDescription& said, const JitModule& module,
                                   const std::string& method);
/// The options among the arguments of `forward`, with their defaults.
std::vector<Option> options_of(const ScriptDescription& said, const JitModule& module);
bool wants(const std::vector<Argument>& arguments, Wants what);
Role role_of(const ScriptDescription& said, const std::string& name, const Problem& problem);

/// Throws PluginError with the file and the reason.
[[noreturn]] void refuse(const std::string& file, const std::string& why);

/// On the CPU, in evaluation mode. Throws PluginError if this LibTorch cannot read the file.
JitModule load(const std::string& file);

/// Calls a method. Exceptions of TorchScript are rethrown as std::bad_alloc or as
/// std::runtime_error that names the file.
c10::IValue call(const std::string& file, const JitModule& module, const std::string& method,
                 std::vector<c10::IValue> arguments);

/// The arguments of a call, in the order of the signature.
std::vector<c10::IValue> stack_of(const std::vector<Argument>& arguments, const Options& options,
                                  const Problem& problem, const Inputs& inputs,
                                  const c10::IValue& state);

/// The parameters (or else buffers) of a module and its submodules, under valid names of a
/// mechanism's parameters.
std::map<std::string, at::Tensor> tensors_of(const JitModule& module, bool parameters);

/// A copy with floating-point tensors of that dtype, on that device.
JitModule converted(const JitModule& module, at::ScalarType type, const std::string& device);

}  // namespace attnbench::script
