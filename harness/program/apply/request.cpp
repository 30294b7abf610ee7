#include "harness/program/apply/request.hpp"

#include <algorithm>

#include "core/arrays/input_arrays.hpp"
#include "core/failure.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/overrides.hpp"

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
    request.options[flag.key] = suite::option_value(spec, flag, request.pattern == "causal");
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
