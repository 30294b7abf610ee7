// Mechanisms written in Python: a TorchScript module, scripted or traced, as an entry.
//
// The module's `forward` is the mechanism. Its arguments declare its inputs, by name and type:
//   query, key, value: Tensor      roles; others must be described in ScriptDescription
//   key_mask: Optional[Tensor]     [B, S] bool, true where the key token is real
//   causal: bool                   whether the pattern is causal
//   anything: int, float, bool, str = DEFAULT    an option
// It returns the output, [B, H, T, Dv]. A module with a decoding state also has
//   empty_state(batch: int, heads: int, head_dim: int, value_dim: int) -> Dict[str, Tensor]
//   step(…the same arguments as forward…, state: Dict[str, Tensor])
//       -> Tuple[Tensor, Dict[str, Tensor]]
// where `step` takes any number of tokens and does not change the shapes of the state. Its
// parameters and buffers become the mechanism's, with the saved values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/registry.hpp"

namespace attnbench {

/// A role other than query, key and value.
struct ScriptRole {
  Source source = Source::key_tokens;
  std::string width = "head_dim";  ///< "head_dim", "value_dim" or a number
};

/// Information that the signature of a module lacks.
struct ScriptDescription {
  std::string name;            ///< of the mechanism
  std::string module_file;     ///< of torch.jit.save
  std::string reference_file;  ///< a second module, its definition; empty = none
  std::string title;
  std::string citation;
  std::vector<Pattern> patterns;  ///< needed where `forward` has no `causal`
  std::map<std::string, ScriptRole> roles;
  std::map<std::string, std::string> option_meanings;
  Claims claims;
  Growth growth;  ///< not finite = nothing is claimed
};

/// Adds the module as a mechanism with one implementation, `composite`. Its reference is the second
/// module run in double or, if there is none, the module itself in double: then a check finds
/// errors of precision, causality and so on, but not a wrong definition, and the entry's citation
/// says so. Throws PluginError with the file and the reason.
void add_script(const ScriptDescription& description, Registry& registry);

}  // namespace attnbench
