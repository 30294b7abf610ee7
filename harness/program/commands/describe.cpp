// attnbench describe NAME: details of a mechanism, alias, task, preset, suite or shape.
#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>
#include <sstream>

#include "core/failure.hpp"
#include "core/json_file.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/suite_arguments.hpp"
#include "harness/program/commands/shared/terminal.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/suite/known_suites.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/shapes.hpp"
#include "harness/program/suite/suite_entries.hpp"

namespace attnbench::commands {
namespace {

using suite::Json;

struct DescribeArguments {
  std::string name;
  std::vector<std::string> plugins;
  bool json = false;
};

std::string range_of(const Option& option) {
  if (!option.choices.empty()) return text::listed(option.choices);
  const auto bound = [&](double value) {
    const bool integer = option.type == OptionType::integer;
    return text::human_value(integer ? Json(static_cast<std::int64_t>(value)) : Json(value));
  };
  if (option.minimum && option.maximum) {
    return bound(*option.minimum) + " to " + bound(*option.maximum);
  }
  if (option.minimum) return "at least " + bound(*option.minimum);
  return option.maximum ? "at most " + bound(*option.maximum) : std::string();
}

void print_options(const std::string& heading, const std::vector<Option>& options) {
  if (options.empty()) return;
  std::vector<TableRow> rows{{heading, "type", "default", "range", "meaning"}};
  for (const Option& option : options) {
    rows.push_back({option.name, to_string(option.type),
                    text::human_value(to_json(option.fallback)), range_of(option), option.meaning});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
}

/// "time T^2 L^0, workspace T^1": the exponents that an implementation claims.
std::string growth_of(const Growth& growth) {
  const auto power = [&](const std::string& what, const char* letter, const std::string& of) {
    const double exponent = claimed_exponent(growth, what + "_in_" + of).value_or(0);
    if (exponent == 0) return std::string();
    std::ostringstream text;
    text << " " << letter;
    if (exponent != 1) text << "^" << exponent;
    return text.str();
  };
  std::string text;
  for (const std::string what : {"time", "workspace"}) {
    if (!claimed_exponent(growth, what + "_in_length")) continue;
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
std::string claims_of(const MechanismSpec& mechanism) {
  std::vector<std::string> made, denied;
  const Json claims = mechanism.claims;
  for (const auto& [claim, is_made] : claims.items()) {
    (is_made.get<bool>() ? made : denied).push_back(claim);
  }
  return text::listed(made) + (denied.empty() ? "" : "; not " + text::listed(denied));
}

/// A line "differs from" for each departure from published code and, after a semicolon, how to undo
/// it.
void add_departures(std::vector<TableRow>& facts, const std::vector<Departure>& departures) {
  for (const Departure& one : departures) {
    facts.push_back({"differs from", one.what + (one.how.empty() ? "" : "; " + one.how)});
  }
}

void print_roles(const MechanismSpec& mechanism) {
  if (!mechanism.roles_unknown.empty()) {
    std::cout << "\n  roles unknown: " << mechanism.roles_unknown << "\n";
    return;
  }
  if (mechanism.roles.empty()) return;
  std::vector<TableRow> rows{{"role", "shape", "patterns", "fed by"}};
  for (const RoleSpec& role : mechanism.roles) {
    rows.push_back({role.name, role.shape, text::listed(role.patterns), role.fed_by});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
  std::cout << "  B batch, H heads, G key heads (a divisor of H), T query tokens, S key tokens (T "
               "unless cross),\n  D head_dim, Dv value_dim, L latents_per_head\n";
}

void print_mechanism(const MechanismSpec& mechanism) {
  std::cout << mechanism.name << ": " << mechanism.title << "\n";
  std::vector<TableRow> facts;
  const auto fact = [&](const std::string& name, const std::string& text) {
    if (!text.empty()) facts.push_back({name, text});
  };
  fact("citation", mechanism.citation);
  std::istringstream formula(mechanism.formula);
  for (std::string line, name = "formula"; std::getline(formula, line); name.clear()) {
    facts.push_back({name, line});
  }
  fact("origin", mechanism.origin);
  fact("patterns", text::listed(mechanism.patterns));
  fact("claims", claims_of(mechanism));
  add_departures(facts, mechanism.differs_from);
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
  print_roles(mechanism);
  print_options("option", mechanism.options);
  std::vector<TableRow> rows{{"implementation", "growth", "gradient", ""}};
  for (const ImplementationSpec& one : mechanism.implementations) {
    rows.push_back({one.name, growth_of(one.growth), one.differentiable ? "yes" : "no", one.title});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
  for (const Alias& alias : mechanism.aliases) {
    std::cout << "\n  alias " << alias.name << " = " << mechanism.name << "/"
              << alias.implementation << ": " << alias.title;
  }
  if (!mechanism.aliases.empty()) std::cout << "\n";
}

void print_task(const TaskSpec& task) {
  std::cout << task.name << ": " << task.title << "\n";
  std::vector<TableRow> facts{{"axis", task.axis}, {"figures", text::listed(task.figures)}};
  add_departures(facts, task.differs_from);
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
  print_options("setting", task.settings);
}

void print_preset(const std::string& name, const suite::Preset& preset) {
  std::cout << name << ": " << preset.title << "\n";
  print_columns(std::cout, {{"source", preset.source}}, "  ", terminal_width(whole_lines));
  std::vector<TableRow> rows{{"setting", "value"}};
  for (const auto& [setting, value] : preset.set) {
    rows.push_back({setting, text::human_value(value)});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
}

void print_shape(const suite::ModelShape& shape) {
  std::cout << shape.name << ": " << shape.title << "\n";
  std::vector<TableRow> facts{{"source", shape.source}};
  if (!shape.notes.empty()) facts.push_back({"notes", shape.notes});
  facts.push_back({"use", "--shape " + shape.name + ", or \"shape\": \"" + shape.name +
                              "\" in a suite; what is said besides wins"});
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
  std::vector<TableRow> rows{{"size", "value"}};
  for (const auto& [size, value] : shape.sizes.items()) {
    rows.push_back({size, text::human_value(Json(value))});
  }
  std::cout << "\n";
  print_columns(std::cout, rows, "  ", terminal_width(whole_lines));
}

/// A suite as its file has it.
using SuiteFile = nlohmann::ordered_json;

/// Keys of an object, or the strings of a list.
std::vector<std::string> names_in(const SuiteFile& file, const char* key) {
  std::vector<std::string> names;
  const SuiteFile part = file.value(key, SuiteFile::object());
  for (const auto& [name, value] : part.items()) {
    names.push_back(part.is_array() && value.is_string() ? value.get<std::string>() : name);
  }
  return names;
}

void print_suite(const suite::KnownSuite& known, const SuiteFile& file) {
  const std::string name = known.file.stem().string();
  std::cout << name << ": " << known.title << "\n";
  std::vector<TableRow> facts;
  const auto fact = [&](const std::string& what, const std::string& text) {
    if (!text.empty()) facts.push_back({what, text});
  };
  fact("suite", known.file.string());
  for (const char* key : {"source", "figure", "notes", "task"}) {
    if (file.contains(key) && file[key].is_string()) fact(key, file[key]);
  }
  fact("tasks", text::listed(names_in(file, "tasks")));
  fact("mechanisms", text::listed(names_in(file, "mechanisms")));
  fact("profiles", text::listed(known.profiles));
  const std::vector<reports::claims::PaperClaim> claims = known_claims();
  const auto own = std::count_if(claims.begin(), claims.end(),
                                 [&](const auto& claim) { return claim.suite == name; });
  if (own > 0) {
    fact("claims", std::to_string(own) + " of papers: attnbench figures --claims " + name);
  }
  fact("cells", "attnbench plan " + name);
  print_columns(std::cout, facts, "  ", terminal_width(whole_lines));
}

void describe_suite(const suite::KnownSuite& known, bool as_json) {
  const auto file = SuiteFile::parse(read_file(known.file, "a suite", mebibyte));
  if (as_json) {
    std::cout << file.dump(2) << "\n";
  } else {
    print_suite(known, file);
  }
}

std::optional<suite::KnownSuite> suite_named(const std::string& name) {
  for (suite::KnownSuite& known : suite::known_suites()) {
    if (known.file.stem() == name) return std::move(known);
  }
  return std::nullopt;
}

[[noreturn]] void refuse(const Catalogue& catalogue, const suite::Shapes& shapes,
                         const std::string& name) {
  std::vector<std::string> known = catalogue.names();
  for (const auto& more : {catalogue.task_names(), suite::preset_names(), shapes.names()}) {
    known.insert(known.end(), more.begin(), more.end());
  }
  for (const suite::KnownSuite& one : suite::known_suites())
    known.push_back(one.file.stem().string());
  throw UsageFailure("nothing is called \"" + name + "\"; " + text::suggestion(name, known));
}

/// What the mechanism's plugin says where it cannot be used. Throws UsageFailure where it is none:
/// nothing is known of it but its name.
std::string require_known(const Catalogue& catalogue, const MechanismSpec& one) {
  for (const PluginSpec& plugin : catalogue.plugins) {
    if (plugin.path != one.origin || plugin.status == "ok") continue;
    const std::string reason = text::bounded_message(plugin.reason);
    if (plugin.status == "unavailable") return reason;
    throw UsageFailure(one.name + " " + plugin.status + ": " + reason);
  }
  return {};
}

int describe(DescribeArguments& arguments) {
  arguments.name = mechanism_named(arguments.name, arguments.plugins);
  const std::string& name = arguments.name;
  const Catalogue catalogue = catalogue_with(arguments.plugins);
  const auto show = [&](const Json& json, const auto& print) {
    if (!arguments.json) return print();
    std::cout << json.dump(2) << "\n";
  };
  if (const auto named = catalogue.find(name)) {
    const std::string unavailable = require_known(catalogue, *named->mechanism);
    show(*named->mechanism, [&] {
      if (const Alias* const alias = named->alias) {
        std::cout << name << " stands for " << named->mechanism->name << "/"
                  << alias->implementation
                  << (alias->options.empty() ? "" : " with " + to_json(alias->options).dump())
                  << "\n\n";
      }
      MechanismSpec printed = *named->mechanism;
      if (!unavailable.empty()) printed.roles_unknown.clear();  // it is the same reason
      print_mechanism(printed);
      if (!unavailable.empty()) std::cout << "\n  unavailable: " << unavailable << "\n";
    });
  } else if (const TaskSpec* const task = catalogue.task(name)) {
    show(*task, [&] {
      print_task(*task);
      if (const auto also = suite_named(name)) {
        std::cout << "\n";
        describe_suite(*also, false);
      }
    });
  } else if (suite::presets().contains(name)) {
    const Json preset = suite::presets()[name];
    show(preset, [&] { print_preset(name, suite::preset_named(name)); });
  } else if (const auto known = suite_named(name)) {
    describe_suite(*known, arguments.json);
  } else {
    const suite::Shapes shapes = suite::Shapes::known_or_none();
    const suite::ModelShape* const shape = shapes.find(name);
    if (shape == nullptr) refuse(catalogue, shapes, name);
    show(*shape, [&] { print_shape(*shape); });
  }
  return 0;
}

}  // namespace

void declare_describe(Command& command) {
  auto arguments = std::make_shared<DescribeArguments>();
  command.option("name", arguments->name, "A name from `attnbench list`").required();
  add_plugin_argument(command, arguments->plugins);
  command.flag("--json", arguments->json, "As JSON");
  command.footer(
      "Examples:\n"
      "  attnbench describe latte\n"
      "  attnbench describe kernel\n"
      "  attnbench describe latte_v1_figure_2\n"
      "  attnbench describe llama3-8b\n"
      "  attnbench describe python:near.py:Near\n"
      "\n"
      "Exit codes: 0 described, also what cannot be used here, with the reason; 2 no such\n"
      "name, or one that could not be registered.");
  command.runs([arguments] { return describe(*arguments); });
}

}  // namespace attnbench::commands
