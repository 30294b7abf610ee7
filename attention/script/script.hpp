// Mechanisms written in Python: a TorchScript module, scripted or traced, as an entry.
//
// The module's `forward` is the mechanism. Its arguments say what it wants, by name and type:
//   query, key, value: Tensor      roles; others must be described
//   key_mask: Optional[Tensor]     [B, S] bool, true where the key token is real
//   causal: bool                   the pattern asked for
//   anything: int, float, bool, str = DEFAULT    an option
// It returns the output, [B, H, T, Dv]. A module that can go on token by token also has
//   empty_state(batch: int, heads: int, head_dim: int, value_dim: int) -> Dict[str, Tensor]
//   step(…the same arguments as forward…, state: Dict[str, Tensor])
//       -> Tuple[Tensor, Dict[str, Tensor]]
// where `step` takes any number of tokens and leaves the shapes of the state as they are. Its
// parameters and buffers are the mechanism's, with the values that they were saved with.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "attention/registry.hpp"

namespace attnbench {

/// How a role that is none of query, key and value is filled.
struct ScriptRole {
  Source source = Source::key_tokens;
  std::string width = "head_dim";  ///< "head_dim", "value_dim" or a number
};

/// What the signature of a module does not say.
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

/// Adds the module as a mechanism of one implementation, `composite`. Its reference is the second
/// module run in double or, where there is none, the module itself in double: then a check finds
/// errors of precision, causality and the rest, but not that the wrong thing is computed, and the
/// entry's citation says so. Throws PluginError naming the file and what is wrong with it.
void add_script(const ScriptDescription& description, Registry& registry);

}  // namespace attnbench
