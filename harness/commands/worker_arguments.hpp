// Arguments of commands that need the worker: --plugin and --device.
#pragma once

#include <string>
#include <vector>

#include "harness/commands/arguments.hpp"
#include "harness/suite/catalogue.hpp"

namespace attnbench::commands {

/// Adds --plugin, which may be repeated. `plugins` begins with those of ATTNBENCH_PLUGIN_PATH, the
/// ones said follow; none stands there twice.
void add_plugin_argument(Command& command, std::vector<std::string>& plugins);

/// All that there is with those plugins. Says on standard error which of them are left out, and
/// why.
suite::Catalogue catalogue_with(const std::vector<std::string>& plugins);

/// Plugins of a list of files and folders with colons between: of a folder every *.so, by name. A
/// file that is not there is named all the same: the worker says so, and goes on without it.
std::vector<std::string> plugins_on_path(const std::string& path);

/// Throws UsageFailure for what names no device, EnvironmentFailure with the reason for one that
/// cannot be used.
void require_device(const std::string& word);

}  // namespace attnbench::commands
