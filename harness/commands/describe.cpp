// attnbench describe NAME: details of a mechanism, alias, task or preset.
#include <iostream>
#include <memory>
#include <sstream>

#include "core/failure.hpp"
#include "core/text/format.hpp"
#include "core/text/spelling.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/commands/worker_arguments.hpp"
#include "harness/suite/profile.hpp"
#include "harness/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

struct DescribeArguments {
  std::string name;
  std::vector<std::string> plugins;
  bool json = false;
};

std::string range_of(const Json& option) {
  if (option.contains("choices") && !option["choices"].empty()) {
    return suite::listed(option["choices"]);
  }
  const bool low = option.contains("minimum"), high = option.contains("maximum");
  // In the catalogue, bounds of integers are doubles, too.
  const auto bound = [&](const char* end) {
    const Json& value = option[end];
    const bool integer = option["type"] == "integer";
    return result::human_value(integer ? Json(value.get<std::int64_t>()) : value);
  };
  if (low && high) return bound("minimum") + " to " + bound("maximum");
  if (low) return "at least " + bound("minimum");
  return high ? "at most " + bound("maximum") : std::string();
}

void print_options(const std::string& heading, const Json& options) {
  if (options.empty()) return;
  std::vector<Row> rows{{heading, "type", "default", "range", "meaning"}};
  for (const Json& option : options) {
    rows.push_back({option["name"], option["type"], result::human_value(option["default"]),
                    range_of(option), option.value("meaning", "")});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
}

/// "time T^2 L^0, workspace T^1": the exponents that an implementation claims.
std::string growth_of(const Json& implementation) {
  const Json growth = implementation.value("growth", Json::object());
  const auto power = [&](const std::string& what, const char* letter, const std::string& of) {
    const double exponent = growth.value(what + "_in_" + of, 0.0);
    if (exponent == 0) return std::string();
    std::ostringstream text;
    text << " " << letter;
    if (exponent != 1) text << "^" << exponent;
    return text.str();
  };
  std::string text;
  for (const std::string what : {"time", "workspace"}) {
    if (!growth.contains(what + "_in_length")) continue;
    const std::string powers =
        power(what, "T", "length") + power(what, "L", "latents") + power(what, "D", "head_dim");
    text.append(text.empty() ? "" : ", ")
        .append(what)
        .append(" ~")
        .append(powers.empty() ? " constant" : powers);
  }
  return text;
}

/// "rows_sum_to_one, linear_in_value; not last_row_agrees"
std::string claims_of(const Json& mechanism) {
  std::vector<std::string> made, denied;
  const Json claims = mechanism.value("claims", Json::object());
  for (const auto& [claim, value] : claims.items())
    (value == true ? made : denied).push_back(claim);
  if (claims.empty()) return {};
  return suite::listed(made) + (denied.empty() ? "" : "; not " + suite::listed(denied));
}

/// A line "differs from" for each departure from published code and, after a semicolon, how to undo
/// it.
void add_departures(std::vector<Row>& facts, const Json& item) {
  for (const Json& one : item.value("differs_from", Json::array())) {
    const std::string how = one.value("how", "");
    facts.push_back({"differs from", one.value("what", "") + (how.empty() ? "" : "; " + how)});
  }
}

void print_roles(const Json& mechanism) {
  if (mechanism.contains("roles_unknown")) {
    std::cout << "\n  roles unknown: " << mechanism.value("roles_unknown", "") << "\n";
    return;
  }
  const Json roles = mechanism.value("roles", Json::array());
  if (roles.empty()) return;
  std::vector<Row> rows{{"role", "shape", "patterns", "fed by"}};
  for (const Json& role : roles) {
    rows.push_back({role.value("name", ""), role.value("shape", ""),
                    suite::listed(role.value("patterns", std::vector<std::string>{})),
                    role.value("fed_by", "")});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
  std::cout << "  B batch, H heads, G key heads (a divisor of H), T query tokens, S key tokens (T "
               "unless cross),\n  D head_dim, Dv value_dim, L latents_per_head\n";
}

void print_mechanism(const Json& mechanism) {
  std::cout << mechanism["name"].get<std::string>() << ": " << mechanism.value("title", "") << "\n";
  std::vector<Row> facts;
  const auto fact = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) facts.push_back({name, text});
  };
  fact("citation", mechanism.value("citation", ""));
  fact("origin", mechanism.value("origin", ""));
  fact("patterns", suite::listed(mechanism.value("patterns", std::vector<std::string>{})));
  fact("claims", claims_of(mechanism));
  add_departures(facts, mechanism);
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
  print_roles(mechanism);
  print_options("option", mechanism.value("options", Json::array()));
  std::vector<Row> rows{{"implementation", "growth", "gradient", ""}};
  for (const Json& implementation : mechanism["implementations"]) {
    rows.push_back({implementation["name"], growth_of(implementation),
                    implementation.value("differentiable", true) ? "yes" : "no",
                    implementation.value("title", "")});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
  for (const Json& alias : mechanism.value("aliases", Json::array())) {
    std::cout << "\n  alias " << alias["name"].get<std::string>() << " = "
              << mechanism["name"].get<std::string>() << "/"
              << alias["implementation"].get<std::string>() << ": " << alias.value("title", "");
  }
  if (!mechanism.value("aliases", Json::array()).empty()) std::cout << "\n";
}

void print_task(const Json& task) {
  std::cout << task["name"].get<std::string>() << ": " << task.value("title", "") << "\n";
  std::vector<Row> facts{
      {"axis", task.value("axis", "")},
      {"figures", suite::listed(task.value("figures", std::vector<std::string>{}))}};
  add_departures(facts, task);
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
  print_options("setting", task["settings"]);
}

void print_preset(const std::string& name, const Json& preset) {
  std::cout << name << ": " << preset.value("title", "") << "\n";
  print_columns(std::cout, {{"source", preset.value("source", "")}}, "  ",
                terminal_width(whole_lines));
  std::vector<Row> rows{{"setting", "value"}};
  for (const auto& [setting, value] : preset["set"].items()) {
    rows.push_back({setting, result::human_value(value)});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
}

/// The catalogue's entry of that name; for an alias, that of its mechanism.
Json find(const suite::Catalogue& catalogue, const std::string& name) {
  const auto alias = catalogue.aliases.find(name);
  const std::string wanted = alias == catalogue.aliases.end() ? name : alias->second.mechanism;
  for (const char* kind : {"mechanisms", "tasks"}) {
    for (const Json& item : catalogue.document[kind]) {
      if (item["name"] == wanted) return item;
    }
  }
  if (suite::presets().contains(name)) return Json(suite::presets()[name]);
  std::vector<std::string> known;
  for (const auto& [word, ignored] : catalogue.mechanisms) known.push_back(word);
  for (const auto& [word, ignored] : catalogue.aliases) known.push_back(word);
  for (const auto& [word, ignored] : catalogue.tasks) known.push_back(word);
  for (const std::string& word : suite::preset_names()) known.push_back(word);
  throw UsageFailure("nothing is called \"" + name + "\"; " + suite::suggestion(name, known));
}

int describe(DescribeArguments& arguments) {
  arguments.name = suite::resolve_script(arguments.name, "", arguments.plugins);
  const suite::Catalogue catalogue = catalogue_with(arguments.plugins);
  const Json item = find(catalogue, arguments.name);
  if (arguments.json) {
    std::cout << item.dump(2) << "\n";
    return 0;
  }
  const auto alias = catalogue.aliases.find(arguments.name);
  if (alias != catalogue.aliases.end()) {
    const std::string options = alias->second.options.dump();
    std::cout << arguments.name << " stands for " << alias->second.mechanism << "/"
              << alias->second.implementation << (options == "{}" ? "" : " with " + options)
              << "\n\n";
  }
  if (item.contains("implementations")) {
    print_mechanism(item);
  } else if (item.contains("settings")) {
    print_task(item);
  } else {
    print_preset(arguments.name, item);
  }
  return 0;
}

}  // namespace

void add_describe(CommandLine& line) {
  Command& command =
      line.add("describe", "Show a mechanism, alias, task or preset: options, ranges, claims");
  auto arguments = std::make_shared<DescribeArguments>();
  command.option("name", arguments->name, "A name from `attnbench list`").required();
  add_plugin_argument(command, arguments->plugins);
  command.flag("--json", arguments->json, "As JSON");
  command.footer(
      "Examples:\n"
      "  attnbench describe latte\n"
      "  attnbench describe kernel");
  command.runs([arguments] { return describe(*arguments); });
}

}  // namespace attnbench::commands
