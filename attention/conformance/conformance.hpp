// Conformance: the properties every mechanism must keep, each of them checked by running it.
//
// For `attnbench check`, for our tests and for whoever writes a plugin. One call to `check` puts
// one implementation through all of them, in one pattern and dtype, at small sizes on one device,
// on the CPU in under three seconds. What a mechanism does not claim, or an implementation says it
// does not support, is reported as not applicable with the reason; everything else is held or
// broken.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "attention/mechanism.hpp"
#include "attention/reference/reference.hpp"

namespace attnbench::conformance {

struct Property {
  std::string name;
  std::string meaning;  ///< one sentence
};

enum class PropertyOutcome { held, broken, not_applicable };
const char* to_string(PropertyOutcome status);

struct Finding {
  std::string property;
  PropertyOutcome status = PropertyOutcome::not_applicable;
  /// The reason. Broken: where, and by how much. Not applicable: why. Held: what was left out and
  /// why, or empty.
  std::string reason;
  double error = 0;  ///< the one that came closest to its tolerance or passed it; may be infinite
  double tolerance = 0;
};

struct CheckOptions {
  std::uint64_t seed = 1;
  /// The device on which the implementation runs. What it is compared with is computed on the CPU.
  std::string device = "cpu";
  /// The mechanism's options, over the kit's choices (small chunks and windows).
  std::map<std::string, OptionValue> options;
  /// Names of properties; empty = all. Throws UsageError for an unknown name.
  std::vector<std::string> only;
};

/// All properties, in the order in which `check` reports them.
std::vector<Property> properties();

/// Throws UsageError where `options` cannot be used; whatever the mechanism does, an exception
/// included, becomes a finding.
std::vector<Finding> check(const Entry& entry, const reference::Reference& reference,
                           const Implementation& implementation, Pattern pattern, Dtype dtype,
                           const CheckOptions& options = {});

/// Whether nothing is broken.
bool all_held(const std::vector<Finding>& findings);

}  // namespace attnbench::conformance
