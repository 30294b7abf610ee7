#include "harness/commands/plugin_argument.hpp"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <sstream>

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

/// The same file under another name is the same plugin.
bool has(const std::vector<std::string>& plugins, const std::string& wanted) {
  return std::any_of(plugins.begin(), plugins.end(), [&](const std::string& one) {
    std::error_code ignored;
    return one == wanted || fs::equivalent(one, wanted, ignored);
  });
}

void append(std::vector<std::string>& plugins, const std::vector<std::string>& more) {
  for (const std::string& one : more) {
    if (!has(plugins, one)) plugins.push_back(one);
  }
}

}  // namespace

std::vector<std::string> plugins_on_path(const std::string& path) {
  std::vector<std::string> plugins;
  std::istringstream parts(path);
  for (std::string part; std::getline(parts, part, ':');) {
    if (part.empty()) continue;
    std::error_code ignored;
    if (!fs::is_directory(part, ignored)) {
      plugins.push_back(part);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(part, ignored)) {
      if (entry.path().extension() == ".so") found.push_back(entry.path().string());
    }
    std::sort(found.begin(), found.end());
    plugins.insert(plugins.end(), found.begin(), found.end());
  }
  return plugins;
}

void add_plugin_argument(CLI::App& command, std::vector<std::string>& plugins) {
  const char* path = std::getenv("ATTNBENCH_PLUGIN_PATH");
  if (path != nullptr) append(plugins, plugins_on_path(path));
  command
      .add_option_function<std::vector<std::string>>(
          "--plugin", [&plugins](const std::vector<std::string>& said) { append(plugins, said); },
          "A plugin's shared object (repeatable; others are found on ATTNBENCH_PLUGIN_PATH)")
      ->allow_extra_args(false);
}

}  // namespace attnbench::commands
