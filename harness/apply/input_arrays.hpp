// The arrays that `attnbench apply` is given, their headers read and held against one another.
//
// Done twice by the same code: by the program, which refuses before a worker starts, and by the
// child that reads the numbers. What the mechanism wants of them only the child can say.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>

#include "harness/apply/npy.hpp"

namespace attnbench::apply {

using Json = nlohmann::json;

struct Given {
  /// [B, heads, tokens, width] by role, all float32 or all float64, none empty, of one B.
  std::map<std::string, npy::Array> roles;
  /// By the mechanism's name for them; numbers with a fraction are of the roles' type.
  std::map<std::string, npy::Array> parameters;
  std::optional<npy::Array> mask;      ///< [B, S], bool or uint8
  std::optional<npy::Array> gradient;  ///< [B, H, T, Dv], of the roles' type
  npy::Element element() const { return roles.begin()->second.element; }
};

/// Opens what `request` (the protocol's `apply`) names: roles, parameters, mask and gradient; a
/// gradient that is "ones" names no file. Throws UsageFailure.
Given open_given(const Json& request);

/// "--query q.npy" or "--role query_logits=l.npy", for messages.
std::string flag_of_role(const std::string& role, const std::string& file);

}  // namespace attnbench::apply
