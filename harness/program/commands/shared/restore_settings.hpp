// What a run that is resumed takes from its journal.
#pragma once

#include <string>

#include "harness/program/commands/shared/command.hpp"
#include "harness/program/run/supervise/settings.hpp"

namespace attnbench::commands {

/// Cells and settings from the journal's header of `settings.resume`, where the flags of `command`
/// do not give them. Throws UsageFailure where the journal is not one of a run of `verb` (run, ab).
void restore_settings(run::RunSettings& settings, const std::string& verb, const Command& command);

}  // namespace attnbench::commands
