// From what the user asked of `attnbench apply` to the protocol's request.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::apply {

using Json = nlohmann::json;

/// The command line, unread. Lists hold NAME=FILE or NAME=VALUE.
struct Asked {
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

/// The protocol's `apply` without `out` and `limits`. Every array's header has been read. Throws
/// UsageFailure for names, values and arrays that cannot be meant.
Json request_of(const suite::Catalogue& catalogue, const Asked& asked);

}  // namespace attnbench::apply
