// PreparedCall: what an operator's text and the shapes of its tensors say, worked out once for
// each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "attention/registry.hpp"

namespace attnbench::operators {

/// The tensors of one call, in the order of the text's roles and weights.
struct Arguments {
  std::vector<at::Tensor> inputs;   ///< [B, H, T, w] or [B, G, S, w] each
  std::vector<at::Tensor> weights;  ///< parameters and buffers
  at::Tensor key_mask;              ///< [B, S] bool, true for real tokens; undefined = all are real
};

/// One call: {"mechanism", "implementation", "pattern", "options", "roles", "weights"} as JSON.
struct CallText {
  Resolved resolved;
  std::string implementation;
  Pattern pattern = Pattern::causal;
  std::map<std::string, OptionValue> options;
  std::vector<std::string> roles;
  std::vector<std::string> weights;
};

/// The built-in mechanisms.
const Registry& registry();

/// The call that `text` describes; each text is read once. Throws UsageError.
const CallText& parsed(const std::string& text);

/// What computes a call.
struct PreparedCall {
  const CallText* text = nullptr;
  const Entry* entry = nullptr;
  const Implementation* implementation = nullptr;
  Options options;
  Problem problem;
  /// Without weights one serves every call; with them each call makes its own, which holds them.
  std::shared_ptr<Mechanism> shared;

  std::shared_ptr<Mechanism> mechanism(const Arguments& arguments) const;
  Inputs inputs(const Arguments& arguments) const;
};

/// For tensors of these shapes, this dtype and device. Throws UsageError and UnsupportedError.
std::shared_ptr<const PreparedCall> prepared_for(const std::string& text,
                                                 const Arguments& arguments, bool gradient);

}  // namespace attnbench::operators
