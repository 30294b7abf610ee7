#include "attention/script/script_signature.hpp"

namespace attnbench::script {
namespace {

using c10::IValue;
using Module = torch::jit::Module;

bool is(const c10::Argument& argument, c10::TypeKind kind) {
  return argument.type()->kind() == kind;
}

OptionType option_type(const c10::Argument& argument) {
  if (is(argument, c10::TypeKind::IntType)) return OptionType::integer;
  if (is(argument, c10::TypeKind::FloatType)) return OptionType::number;
  return is(argument, c10::TypeKind::BoolType) ? OptionType::boolean : OptionType::text;
}

OptionValue option_value(const IValue& value) {
  if (value.isInt()) return value.toInt();
  if (value.isDouble()) return value.toDouble();
  if (value.isBool()) return value.toBool();
  return value.toStringRef();
}

bool is_option(const c10::Argument& argument) {
  return is(argument, c10::TypeKind::IntType) || is(argument, c10::TypeKind::FloatType) ||
         is(argument, c10::TypeKind::BoolType) || is(argument, c10::TypeKind::StringType);
}

/// What one argument of `forward` or `step` is for.
Argument understood(const ScriptDescription& said, const c10::Argument& argument) {
  const std::string& name = argument.name();
  if (name == "key_mask") return {name, Wants::key_mask};
  if (name == "causal" && is(argument, c10::TypeKind::BoolType)) return {name, Wants::causal};
  if (name == "state") return {name, Wants::state};
  if (is(argument, c10::TypeKind::TensorType)) {
    if (name == "query" || name == "key" || name == "value" || said.roles.count(name) != 0) {
      return {name, Wants::role};
    }
    refuse(said.module_file, "its argument " + name +
                                 " is none of query, key and value: describe it under \"roles\"");
  }
  if (is_option(argument) && argument.default_value()) {
    return {name, Wants::option, *argument.default_value()};
  }
  refuse(said.module_file, "its argument " + name + " of type " + argument.type()->annotation_str() +
                               " is neither a tensor nor an option (int, float, bool or str) with "
                               "a default");
}

std::int64_t width_of(const std::string& word, const Problem& problem) {
  if (word == "head_dim") return problem.head_dim;
  return word == "value_dim" ? problem.value_dim : std::stoll(word);
}

}  // namespace

void refuse(const std::string& file, const std::string& why) {
  throw PluginError("plugin " + file + " is refused: " + why);
}

std::vector<Argument> arguments_of(const ScriptDescription& said, const Module& module,
                                   const std::string& method) {
  std::vector<Argument> arguments;
  const c10::FunctionSchema& schema = module.get_method(method).function().getSchema();
  for (std::size_t i = 1; i < schema.arguments().size(); ++i) {  // 0 is self
    arguments.push_back(understood(said, schema.arguments()[i]));
  }
  return arguments;
}

std::vector<Option> options_of(const ScriptDescription& said, const Module& module) {
  std::vector<Option> options;
  for (const c10::Argument& argument :
       module.get_method("forward").function().getSchema().arguments()) {
    if (argument.name() == "causal" || !is_option(argument)) continue;
    const auto meaning = said.option_meanings.find(argument.name());
    options.push_back({argument.name(),
                       option_type(argument),
                       option_value(*argument.default_value()),
                       meaning == said.option_meanings.end() ? "of the module" : meaning->second,
                       {},
                       {},
                       {}});
  }
  return options;
}

bool wants(const std::vector<Argument>& arguments, Wants what) {
  for (const Argument& argument : arguments) {
    if (argument.wants == what) return true;
  }
  return false;
}

Role role_of(const ScriptDescription& said, const std::string& name, const Problem& problem) {
  const auto described = said.roles.find(name);
  if (described != said.roles.end()) {
    return {name, described->second.source, width_of(described->second.width, problem)};
  }
  const bool query = name == "query";
  return {name, query ? Source::query_tokens : Source::key_tokens,
          name == "value" ? problem.value_dim : problem.head_dim};
}

}  // namespace attnbench::script
