// --plugin PATH and ATTNBENCH_PLUGIN_PATH, which all commands that need the worker share, and what
// there is with those plugins.
#pragma once

#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace CLI {
class App;
}

namespace attnbench::commands {

/// Adds --plugin, which may be repeated. `plugins` begins with those of ATTNBENCH_PLUGIN_PATH, the
/// ones said follow; none stands there twice.
void add_plugin_argument(CLI::App& command, std::vector<std::string>& plugins);

/// All that there is with those plugins. Says on standard error which of them are left out, and
/// why.
suite::Catalogue catalogue_with(const std::vector<std::string>& plugins);

/// Plugins of a list of files and folders with colons between: of a folder every *.so, by name. A
/// file that is not there is named all the same: the worker says so, and goes on without it.
std::vector<std::string> plugins_on_path(const std::string& path);

}  // namespace attnbench::commands
