// attnbench list [WHAT]: mechanisms, tasks, suites, shapes, devices and presets.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

#include "core/text/spelling.hpp"
#include "harness/measure/device.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/shapes.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

const std::vector<std::string> kinds{"mechanisms", "implementations", "aliases", "tasks",
                                     "suites",     "shapes",          "devices", "presets"};

struct ListArguments {
  std::string kind;
  std::vector<std::string> plugins;
  bool json = false;
};

/// An item, and what is shown beside its name and title.
struct Item {
  Json json;
  std::string name;
  std::string title;
  std::string remark;
};

/// Asks the worker for the catalogue only where it is needed; suites need none.
class Lister {
 public:
  explicit Lister(const std::vector<std::string>& plugins) : plugins_(plugins) {}

  std::vector<Item> items(const std::string& kind) {
    if (kind == "mechanisms") return mechanisms();
    if (kind == "implementations") return implementations();
    if (kind == "aliases") return aliases();
    if (kind == "tasks") return tasks();
    if (kind == "suites") return suites();
    if (kind == "shapes") return shapes();
    if (kind == "devices") return devices();
    return presets();
  }

 private:
  const Catalogue& catalogue() {
    if (!catalogue_) catalogue_ = catalogue_with(plugins_);
    return *catalogue_;
  }

  std::vector<Item> mechanisms() {
    std::vector<Item> items;
    for (const MechanismSpec& one : catalogue().mechanisms) {
      const std::string from = one.origin == "built in" ? "" : "  (from " + one.origin + ")";
      items.push_back({one, one.name, one.title, text::listed(one.implementation_names()) + from});
    }
    return items;
  }

  std::vector<Item> implementations() {
    std::vector<Item> items;
    for (const MechanismSpec& mechanism : catalogue().mechanisms) {
      for (const ImplementationSpec& one : mechanism.implementations) {
        const std::string name = mechanism.name + "/" + one.name;
        Json json = one;
        json.update({{"mechanism", mechanism.name}, {"name", name}});
        items.push_back({std::move(json), name, one.title, ""});
      }
    }
    return items;
  }

  std::vector<Item> aliases() {
    std::vector<Item> items;
    for (const MechanismSpec& mechanism : catalogue().mechanisms) {
      for (const Alias& one : mechanism.aliases) {
        Json json = one;
        json.update({{"mechanism", mechanism.name}});
        const std::string options = one.options.empty() ? "" : " " + to_json(one.options).dump();
        items.push_back({std::move(json), one.name, one.title,
                         mechanism.name + "/" + one.implementation + options});
      }
    }
    return items;
  }

  std::vector<Item> tasks() {
    std::vector<Item> items;
    for (const TaskSpec& one : catalogue().tasks) {
      items.push_back({one, one.name, one.title, ""});
    }
    return items;
  }

  static std::vector<Item> suites() {
    std::vector<Item> items;
    for (const suite::KnownSuite& known : suite::known_suites()) {
      items.push_back({{{"name", known.file.string()},
                        {"title", known.title},
                        {"source", known.source},
                        {"profiles", known.profiles}},
                       known.file.string(),
                       known.title,
                       known.profiles.empty() ? "" : "profiles: " + text::listed(known.profiles)});
    }
    return items;
  }

  static std::vector<Item> shapes() {
    std::vector<Item> items;
    const suite::Shapes known = suite::Shapes::known_or_none();
    for (const suite::ModelShape& one : known.all()) {
      items.push_back({one, one.name, one.title, one.sizes_text()});
    }
    return items;
  }

  static std::vector<Item> devices() {
    std::vector<Item> items;
    for (const auto& device : measure::all_devices()) {
      const std::string refusal = device->refusal(0);
      const std::string title = refusal.empty() ? "can be used here" : "cannot be used: " + refusal;
      items.push_back({{{"name", device->name()}, {"title", title}}, device->name(), title, ""});
    }
    return items;
  }

  static std::vector<Item> presets() {
    std::vector<Item> items;
    for (const auto& [name, preset] : suite::presets().items()) {
      Json json = preset;
      json.update({{"name", name}});
      const suite::Preset known = suite::preset_named(name);
      items.push_back(
          {std::move(json), name, known.title, known.source == "none" ? "" : known.source});
    }
    return items;
  }

  const std::vector<std::string>& plugins_;
  std::optional<Catalogue> catalogue_;
};

int list(const ListArguments& arguments) {
  Lister lister(arguments.plugins);
  Json all = Json::object();
  for (const std::string& kind : kinds) {
    // Mechanisms list their implementations; list those alone only on request.
    const bool wanted = arguments.kind.empty() ? kind != "implementations" : kind == arguments.kind;
    if (!wanted) continue;
    const std::vector<Item> items = lister.items(kind);
    Json& list = all[kind] = Json::array();
    std::vector<TableRow> rows;
    for (const Item& item : items) {
      list.push_back(item.json);
      rows.push_back({item.name, item.title, item.remark});
    }
    if (arguments.json || rows.empty()) continue;
    if (arguments.kind.empty()) std::cout << kind << "\n";
    print_columns(std::cout, rows, arguments.kind.empty() ? "  " : "", terminal_width(whole_lines));
  }
  if (arguments.json) {
    std::cout << (arguments.kind.empty() ? all : all[arguments.kind]).dump(2) << "\n";
  }
  return 0;
}

}  // namespace

void declare_list(Command& command) {
  auto arguments = std::make_shared<ListArguments>();
  command.option("what", arguments->kind, text::listed(kinds) + "; all of them by default")
      .one_of(kinds);
  add_plugin_argument(command, arguments->plugins);
  command.flag("--json", arguments->json, "All details, as JSON");
  command.footer(
      "Example:\n"
      "  attnbench list suites");
  command.runs([arguments] { return list(*arguments); });
}

}  // namespace attnbench::commands
