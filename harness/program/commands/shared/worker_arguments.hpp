// Arguments of commands that need the worker: --plugin and --device.
#pragma once

#include <string>
#include <vector>

#include "core/catalogue.hpp"
#include "core/process/fingerprint.hpp"
#include "harness/program/commands/shared/command.hpp"

namespace attnbench::commands {

/// Adds --plugin, which may be repeated. `plugins` gets those of ATTNBENCH_PLUGIN_PATH, then those
/// of --plugin, without duplicates.
void add_plugin_argument(Command& command, std::vector<std::string>& plugins);

/// The mechanism's name for a word of the command line, by suite::resolve_script in the working
/// folder.
std::string mechanism_named(const std::string& word, std::vector<std::string>& plugins);

/// Whether a name is built in by the worker's catalogue; a suite::IsBuiltin.
bool is_builtin(const std::string& name);

/// The catalogue with those plugins. Reports on standard error which are left out, and why. Throws
/// UsageFailure where a mechanism in Python cannot be registered or a plugin's name is taken:
/// another mechanism would be measured in its place.
Catalogue catalogue_with(const process::Build& build);

/// Plugins of a list of files and folders, separated by colons; of a folder all *.so, sorted by
/// name. Missing files stay in the list: the worker reports them and continues.
std::vector<std::string> plugins_on_path(const std::string& path);

/// Throws UsageFailure where `word` names no device, EnvironmentFailure with the reason where the
/// device cannot be used.
void require_device(const std::string& word);

}  // namespace attnbench::commands
