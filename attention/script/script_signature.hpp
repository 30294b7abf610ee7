// What the signature of a TorchScript module says: which inputs it wants, which options it has.
#pragma once

#include "attention/script/script.hpp"
#include "attention/torch/script.hpp"

namespace attnbench::script {

/// What one argument of `forward` or `step` is for.
enum class Wants { role, key_mask, causal, option, state };

struct Argument {
  std::string name;
  Wants wants = Wants::role;
  c10::IValue fallback = {};  ///< of an option
};

/// The arguments of a method that is there, in order. Throws PluginError naming the file and the
/// first one that makes no sense.
std::vector<Argument> arguments_of(const ScriptDescription& said, const torch::jit::Module& module,
                                   const std::string& method);
/// The options among those of `forward`, with their defaults.
std::vector<Option> options_of(const ScriptDescription& said, const torch::jit::Module& module);
bool wants(const std::vector<Argument>& arguments, Wants what);
Role role_of(const ScriptDescription& said, const std::string& name, const Problem& problem);

/// Throws PluginError: the file, refused, and why.
[[noreturn]] void refuse(const std::string& file, const std::string& why);

}  // namespace attnbench::script
