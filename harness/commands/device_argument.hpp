// --device of the commands that take no suite.
#pragma once

#include <string>

namespace attnbench::commands {

/// Throws UsageFailure for what names no device, EnvironmentFailure with the reason for one that
/// cannot be used.
void require_device(const std::string& word);

}  // namespace attnbench::commands
