#include "harness/program/commands/shared/worker_arguments.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <sstream>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/process/python_word.hpp"
#include "core/protocol.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/measure/device.hpp"
#include "harness/program/run/plan/planning.hpp"
#include "harness/program/suite/overrides.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

namespace fs = std::filesystem;

/// Whether `plugins` has this file, perhaps under another path.
bool has(const std::vector<std::string>& plugins, const std::string& wanted) {
  const PluginName asked(wanted);
  return std::any_of(plugins.begin(), plugins.end(), [&](const std::string& text) {
    const PluginName one(text);
    std::error_code ignored;
    return one.as == asked.as &&
           (one.path == asked.path || fs::equivalent(one.path, asked.path, ignored));
  });
}

/// Refuses a missing file. A plugin that fails to load is left out instead.
void expect_file(const std::string& text) {
  const std::string path = PluginName(text).path;
  constexpr std::size_t most = 4096 * mebibyte;
  try {
    expect_regular_file(path, "a shared object, or a module of torch.jit.save", most);
  } catch (const UsageFailure& failure) {
    throw UsageFailure(std::string("--plugin ") + failure.what());
  }
}

/// The worker's reason without the plugin's path and status, which are printed before it.
std::string without_path(std::string reason, const std::string& path) {
  for (const std::string& begin : {"plugin " + path, std::string(" is refused")}) {
    if (reason.rfind(begin, 0) == 0) reason.erase(0, begin.size());
  }
  return reason.erase(0, reason.find_first_not_of(": "));
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

void add_plugin_argument(Command& command, std::vector<std::string>& plugins) {
  const char* path = std::getenv("ATTNBENCH_PLUGIN_PATH");
  if (path != nullptr) append(plugins, plugins_on_path(path));
  const auto take = [&plugins](const std::vector<std::string>& given) {
    for (const std::string& one : given) {
      if (mechanism_named(one, plugins) != one) continue;  // it is in Python, and there now
      expect_file(one);
      append(plugins, {one});
    }
  };
  command
      .option("--plugin", std::function<void(const std::vector<std::string>&)>(take),
              "A plugin's shared object (repeatable; others are found on ATTNBENCH_PLUGIN_PATH); "
              "WORD=FILE calls its mechanism NAME NAME_WORD, for two builds side by side")
      .repeatable();
}

std::string mechanism_named(const std::string& word, std::vector<std::string>& plugins) {
  return suite::resolve_script(word, "", plugins, is_builtin);
}

bool is_builtin(const std::string& name) {
  static const Catalogue builtin = run::load_catalogue({});
  return builtin.find(name).has_value();
}

Catalogue catalogue_with(const process::Build& build) {
  Catalogue catalogue = run::load_catalogue(build);
  for (const PluginSpec& plugin : catalogue.plugins) {
    const bool told_by_cells = plugin.status == "unavailable" || plugin.status == "failed";
    if (plugin.status == "ok" || told_by_cells) continue;
    const std::string text = "plugin " + text::shorten(plugin.path, 300) + " " + plugin.status +
                             ": " + text::bounded_message(without_path(plugin.reason, plugin.path));
    if (process::is_python(plugin.path) || plugin.status == "clash") {
      throw UsageFailure(text + "; another mechanism would be measured in its place: WORD=" +
                         PluginName(plugin.path).path + " gives it another name");
    }
    std::cerr << "attnbench: " << text << "\n";
  }
  return catalogue;
}

void require_device(const std::string& word) {
  const std::string complaint = suite::device_complaint(word);
  if (!complaint.empty()) throw UsageFailure(complaint);
  measure::usable_device(word);
}

}  // namespace attnbench::commands
