// A TorchScript module as it is used: loaded, called with what its signature asks for, its tensors,
// and a copy of it in another dtype or on another device.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/script/script_signature.hpp"

namespace attnbench::script {

using JitModule = torch::jit::Module;

/// On the CPU, set to evaluate. Throws PluginError where this LibTorch cannot read the file.
JitModule load(const std::string& file);

/// Calls a method. What TorchScript throws comes as std::bad_alloc or as std::runtime_error, which
/// names the file.
c10::IValue call(const std::string& file, const JitModule& module, const std::string& method,
                 std::vector<c10::IValue> arguments);

/// What a call passes, in the order of the signature.
std::vector<c10::IValue> stack_of(const std::vector<Argument>& arguments, const Options& options,
                                  const Problem& problem, const Inputs& inputs,
                                  const c10::IValue& state);

/// Parameters (or else buffers) of a module and its parts under names that a mechanism may have.
std::map<std::string, at::Tensor> tensors_of(const JitModule& module, bool parameters);

/// A copy whose floating numbers have that dtype and device.
JitModule converted(const JitModule& module, at::ScalarType type, const std::string& device);

}  // namespace attnbench::script
