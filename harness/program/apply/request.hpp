// The protocol's request for `attnbench apply`, from its arguments.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/protocol.hpp"

namespace attnbench::apply {

/// Arguments as they are typed. Lists hold NAME=FILE or NAME=VALUE.
struct ApplyArguments {
  std::string mechanism;  ///< a name or an alias
  std::string pattern;    ///< empty = the mechanism's only one
  std::string implementation;
  std::string query, key, value;  ///< files; empty = not given
  std::vector<std::string> roles;
  std::vector<std::string> parameters;
  std::vector<std::string> options;
  std::string mask;
  std::string gradient;  ///< a file or "ones"
  std::uint64_t seed = 0;
  std::int64_t check_rows = 64;
  bool allow_nan = false;
};

/// The request without `out`, `limits` and `log`. Reads the header of each array. Throws
/// UsageFailure for names, values and arrays that do not fit the mechanism.
protocol::Apply request_of(const Catalogue& catalogue, const ApplyArguments& arguments);

}  // namespace attnbench::apply
