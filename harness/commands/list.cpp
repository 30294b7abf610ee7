// attnbench list [WHAT]: mechanisms, tasks, suites, devices and presets.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "core/text/spelling.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/suite_arguments.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/commands/worker_arguments.hpp"
#include "harness/measure/device.hpp"
#include "harness/suite/profile.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

const std::vector<std::string> kinds{"mechanisms", "implementations", "aliases", "tasks",
                                     "suites",     "devices",         "presets"};

struct ListArguments {
  std::string kind;
  std::vector<std::string> plugins;
  bool json = false;
};

/// Asks the worker for the catalogue only where it is needed; suites need none.
class Lister {
 public:
  explicit Lister(const std::vector<std::string>& plugins) : plugins_(plugins) {}

  Json items(const std::string& kind) {
    if (kind == "mechanisms") return catalogue()["mechanisms"];
    if (kind == "implementations") return implementations();
    if (kind == "aliases") return aliases();
    if (kind == "tasks") return catalogue()["tasks"];
    if (kind == "suites") return suites();
    if (kind == "devices") return devices();
    Json presets = Json::array();
    for (const auto& [name, preset] : suite::presets().items()) {
      Json item = preset;
      item["name"] = name;
      presets.push_back(item);
    }
    return presets;
  }

 private:
  const Json& catalogue() {
    if (!catalogue_) catalogue_ = catalogue_with(plugins_).document;
    return *catalogue_;
  }

  Json implementations() {
    Json items = Json::array();
    for (const Json& mechanism : catalogue()["mechanisms"]) {
      for (Json item : mechanism["implementations"]) {
        item["mechanism"] = mechanism["name"];
        item["name"] = mechanism["name"].get<std::string>() + "/" + item["name"].get<std::string>();
        items.push_back(item);
      }
    }
    return items;
  }

  Json aliases() {
    Json items = Json::array();
    for (const Json& mechanism : catalogue()["mechanisms"]) {
      for (Json item : mechanism.value("aliases", Json::array())) {
        item["mechanism"] = mechanism["name"];
        items.push_back(item);
      }
    }
    return items;
  }

  static Json suites() {
    Json items = Json::array();
    for (const KnownSuite& known : known_suites()) {
      items.push_back({{"name", known.file.string()},
                       {"title", known.title},
                       {"source", known.source},
                       {"profiles", known.profiles}});
    }
    return items;
  }

  static Json devices() {
    Json items = Json::array();
    for (const auto& device : measure::all_devices()) {
      const std::string refusal = device->refusal(0);
      items.push_back(
          {{"name", device->name()},
           {"title", refusal.empty() ? "can be used here" : "cannot be used: " + refusal}});
    }
    return items;
  }

  const std::vector<std::string>& plugins_;
  std::optional<Json> catalogue_;
};

/// What is shown beside name and title.
std::string remark(const std::string& kind, const Json& item) {
  if (kind == "mechanisms") {
    std::vector<std::string> names;
    for (const Json& implementation : item["implementations"]) {
      names.push_back(implementation["name"]);
    }
    const std::string origin = item.value("origin", "built in");
    return suite::listed(names) + (origin == "built in" ? "" : "  (from " + origin + ")");
  }
  if (kind == "aliases") {
    const std::string options = item.value("options", Json::object()).dump();
    return item["mechanism"].get<std::string>() + "/" + item["implementation"].get<std::string>() +
           (options == "{}" ? "" : " " + options);
  }
  if (kind == "suites" && !item["profiles"].empty()) {
    return "profiles: " + suite::listed(item["profiles"]);
  }
  if (kind == "presets" && item.value("source", "none") != "none") return item["source"];
  return {};
}

int list(const ListArguments& arguments) {
  Lister lister(arguments.plugins);
  Json all = Json::object();
  for (const std::string& kind : kinds) {
    // Mechanisms list their implementations; list those alone only on request.
    const bool wanted = arguments.kind.empty() ? kind != "implementations" : kind == arguments.kind;
    if (wanted) all[kind] = lister.items(kind);
  }
  if (arguments.json) {
    std::cout << (arguments.kind.empty() ? all : all[arguments.kind]).dump(2) << "\n";
    return 0;
  }
  for (const std::string& kind : kinds) {
    if (!all.contains(kind) || all[kind].empty()) continue;
    std::vector<Row> rows;
    for (const Json& item : all[kind]) {
      rows.push_back({item["name"], item.value("title", ""), remark(kind, item)});
    }
    if (arguments.kind.empty()) std::cout << kind << "\n";
    print_columns(std::cout, rows, arguments.kind.empty() ? "  " : "", terminal_width(whole_lines));
  }
  return 0;
}

}  // namespace

void add_list(CommandLine& line) {
  Command& command = line.add("list", "List mechanisms, tasks, suites, devices and presets");
  auto arguments = std::make_shared<ListArguments>();
  command.option("what", arguments->kind, suite::listed(kinds) + "; all of them by default")
      .one_of(kinds);
  add_plugin_argument(command, arguments->plugins);
  command.flag("--json", arguments->json, "All details, as JSON");
  command.footer(
      "Example:\n"
      "  attnbench list suites");
  command.runs([arguments] { return list(*arguments); });
}

}  // namespace attnbench::commands
