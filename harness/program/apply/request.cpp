#include "harness/program/apply/request.hpp"

#include <algorithm>

#include "core/arrays/input_arrays.hpp"
#include "core/failure.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/profile.hpp"
#include "harness/program/suite/values.hpp"

namespace attnbench::apply {
namespace {

bool among(const std::string& word, const std::vector<std::string>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

void require_known(const std::string& flag, const std::string& word,
                   const std::vector<std::string>& known) {
  if (among(word, known)) return;
  throw UsageFailure(flag + word + ": there is no such; " + text::suggestion(word, known));
}

NamedMechanism named(const Catalogue& catalogue, const std::string& name) {
  if (const auto found = catalogue.find(name)) return *found;
  throw UsageFailure("there is no mechanism \"" + name +
                     "\": " + text::suggestion(name, catalogue.names()));
}

std::string pattern_of(const MechanismSpec& spec, const std::string& pattern) {
  if (pattern.empty() && spec.patterns.size() == 1) return spec.patterns.front();
  if (pattern.empty()) {
    throw UsageFailure("--pattern is missing: " + spec.name + " has the patterns " +
                       text::listed(spec.patterns));
  }
  if (!among(pattern, spec.patterns)) {
    throw UsageFailure("--pattern " + pattern + ": " + spec.name + " has the patterns " +
                       text::listed(spec.patterns));
  }
  return pattern;
}

/// A --set of one value in the type of the mechanism's option.
OptionValue option_value(const MechanismSpec& spec, const suite::SetFlag& flag, bool causal) {
  const auto option = std::find_if(spec.options.begin(), spec.options.end(),
                                   [&](const auto& each) { return each.name == flag.key; });
  if (option == spec.options.end()) {
    std::vector<std::string> known;
    for (const Option& each : spec.options) known.push_back(each.name);
    throw UsageFailure(flag.place + spec.name + " has no option \"" + flag.key + "\"; " +
                       text::suggestion(flag.key, known));
  }
  if (flag.values.size() != 1) {
    throw UsageFailure(flag.place + "expected one value: this is a single call");
  }
  std::string complaint;
  const auto typed = suite::typed_value(*option, flag.values.front(), complaint);
  if (!typed) throw UsageFailure(flag.place + "the value " + complaint);
  if (option->type == OptionType::window && typed->is_number())
    return suite::window_of(*typed, causal);
  if ((option->type == OptionType::window || option->type == OptionType::integer) &&
      typed->is_string()) {
    throw UsageFailure(flag.place +
                       "expected a whole number: sizes come from the arrays here, so "
                       "none can be named");
  }
  return value_from(*typed, flag.key);
}

/// NAME=FILE into `files`; a name given twice is refused.
void add_file(std::map<std::string, std::string>& files, const std::string& flag,
              const std::string& text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    throw UsageFailure(flag + " " + text + ": expected NAME=FILE.npy");
  }
  const std::string name = text.substr(0, equals);
  if (files.count(name) != 0) {
    throw UsageFailure(flag + " " + text + ": " + name + " is given twice, first as " +
                       files[name]);
  }
  files[name] = text.substr(equals + 1);
}

std::map<std::string, std::string> roles_of(const ApplyArguments& arguments) {
  std::map<std::string, std::string> roles;
  if (!arguments.query.empty()) roles["query"] = arguments.query;
  if (!arguments.key.empty()) roles["key"] = arguments.key;
  if (!arguments.value.empty()) roles["value"] = arguments.value;
  for (const std::string& text : arguments.roles) add_file(roles, "--role", text);
  if (roles.empty()) {
    throw UsageFailure(
        "no array was given: say --query FILE --key FILE --value FILE, and --role NAME=FILE for "
        "roles of other names; where one is missing the answer lists them all");
  }
  return roles;
}

}  // namespace

protocol::Apply request_of(const Catalogue& catalogue, const ApplyArguments& arguments) {
  const NamedMechanism asked = named(catalogue, arguments.mechanism);
  const MechanismSpec& spec = *asked.mechanism;
  protocol::Apply request;
  request.mechanism = spec.name;
  request.implementation = asked.implementation();
  if (asked.alias != nullptr) request.options = asked.alias->options;
  request.pattern = pattern_of(spec, arguments.pattern);
  if (!arguments.implementation.empty()) {
    std::vector<std::string> known = spec.implementation_names();
    known.emplace_back("auto");
    require_known("--implementation ", arguments.implementation, known);
    request.implementation = arguments.implementation;
  }
  for (const std::string& text : arguments.options) {
    const suite::SetFlag flag = suite::parse_set_flag(text);
    request.options[flag.key] = option_value(spec, flag, request.pattern == "causal");
  }
  request.roles = roles_of(arguments);
  for (const std::string& text : arguments.parameters) {
    add_file(request.parameters, "--param", text);
  }
  request.mask = arguments.mask;
  request.gradient = arguments.gradient;
  request.seed = arguments.seed;
  request.check_rows = arguments.check_rows;
  request.allow_nan = arguments.allow_nan;
  arrays::open_input_arrays(request);
  return request;
}

}  // namespace attnbench::apply
