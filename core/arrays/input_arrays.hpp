// Input arrays of `attnbench apply`: their headers are read and checked against each other.
//
// The program does so before it starts a worker, and so does the child that reads the numbers. Only
// the child can check them against the mechanism.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/arrays/npy.hpp"
#include "core/protocol.hpp"

namespace attnbench::arrays {

struct InputArrays {
  /// The arrays by role, [B, heads, tokens, width], all float32 or all float64, none empty, of one
  /// B.
  std::map<std::string, ArrayFile> roles;
  /// The parameters by name; floating-point ones are of the roles' type.
  std::map<std::string, ArrayFile> parameters;
  std::optional<ArrayFile> mask;      ///< [B, S], bool or uint8
  std::optional<ArrayFile> gradient;  ///< [B, H, T, Dv], of the roles' type
  Element element() const { return roles.begin()->second.element; }
};

/// Opens the roles, parameters, mask and gradient of `request`. The gradient "ones" is not a file.
/// Throws UsageFailure.
InputArrays open_input_arrays(const protocol::Apply& request);

/// The flag that names a role's file, for messages: "--query q.npy" or "--role query_logits=l.npy".
std::string flag_of_role(const std::string& role, const std::string& file);

}  // namespace attnbench::arrays
