#include "core/option_json.hpp"

#include <cmath>
#include <limits>

#include "core/json_object.hpp"

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

Json to_json(const OptionValues& values) {
  Json out = Json::object();
  for (const auto& [name, value] : values) out[name] = to_json(value);
  return out;
}

std::string plain_text(const OptionValue& value) {
  const auto* const text = std::get_if<std::string>(&value);
  return text != nullptr ? *text : to_json(value).dump();
}

void to_json(Json& json, const Option& option) {
  json = {{"name", option.name},
          {"type", to_string(option.type)},
          {"default", to_json(option.fallback)},
          {"meaning", option.meaning}};
  if (option.minimum) json["minimum"] = *option.minimum;
  if (option.maximum) json["maximum"] = *option.maximum;
  if (!option.choices.empty()) json["choices"] = option.choices;
}

void from_json(const Json& json, Option& option) {
  JsonReader reader(json);
  reader.at("name", option.name);
  reader.word("type", option.type, to_string, type_from);
  if (option.type == OptionType::number) {
    double number = 0;
    reader.at("default", number);
    option.fallback = number;
  } else {
    reader.at("default", option.fallback);
  }
  reader.at("meaning", option.meaning);
  reader.maybe("minimum", option.minimum);
  reader.maybe("maximum", option.maximum);
  reader.maybe("choices", option.choices);
  reader.finish();
}

}  // namespace attnbench
