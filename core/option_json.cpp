#include "core/option_json.hpp"

#include <cmath>
#include <limits>

#include "core/errors.hpp"

namespace attnbench {
namespace {

using Json = nlohmann::json;

std::int64_t integer_from(const Json& value, const std::string& where) {
  if (value.is_number_unsigned() &&
      value.get<std::uint64_t>() > std::numeric_limits<std::int64_t>::max()) {
    throw UsageError(where + ": " + value.dump() + " is too large for a whole number");
  }
  if (!value.is_number_integer()) {
    throw UsageError(where + ": expected a whole number, not " + value.dump());
  }
  return value.get<std::int64_t>();
}

OptionType type_from(const std::string& word) {
  for (const OptionType type : {OptionType::integer, OptionType::number, OptionType::boolean,
                                OptionType::text, OptionType::window}) {
    if (word == to_string(type)) return type;
  }
  throw UsageError("there is no type of options \"" + word + "\"");
}

std::optional<double> bound_from(const Json& declaration, const char* name) {
  if (!declaration.contains(name)) return std::nullopt;
  return declaration.at(name).get<double>();
}

}  // namespace

OptionValue value_from(const Json& value, const std::string& where) {
  if (value.is_boolean()) return value.get<bool>();
  if (value.is_string()) return value.get<std::string>();
  if (value.is_number_float()) return value.get<double>();
  if (value.is_number()) return integer_from(value, where);
  if (value.is_object() && value.size() == 2 && value.contains("left") && value.contains("right")) {
    return Window{integer_from(value.at("left"), where + ".left"),
                  integer_from(value.at("right"), where + ".right")};
  }
  throw UsageError(where + ": expected a number, a word, true, false or {left, right}, not " +
                   value.dump());
}

Json to_json(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, Window>) {
          return {{"left", held.left}, {"right", held.right}};
        } else {
          return held;
        }
      },
      value);
}

Option option_from(const Json& declaration) {
  Option option;
  option.name = declaration.at("name");
  option.type = type_from(declaration.at("type"));
  option.fallback = option.type == OptionType::number
                        ? OptionValue(declaration.at("default").get<double>())
                        : value_from(declaration.at("default"), option.name);
  option.meaning = declaration.value("meaning", "");
  option.minimum = bound_from(declaration, "minimum");
  option.maximum = bound_from(declaration, "maximum");
  option.choices = declaration.value("choices", std::vector<std::string>{});
  return option;
}

Json to_json(const Option& option) {
  Json out = {{"name", option.name},
              {"type", to_string(option.type)},
              {"default", to_json(option.fallback)},
              {"meaning", option.meaning}};
  if (option.minimum) out["minimum"] = *option.minimum;
  if (option.maximum) out["maximum"] = *option.maximum;
  if (!option.choices.empty()) out["choices"] = option.choices;
  return out;
}

}  // namespace attnbench
