#include "core/json_object.hpp"

#include <algorithm>

#include "core/json_schema.hpp"
#include "core/option.hpp"

namespace attnbench {

using Json = nlohmann::json;

std::string found_text(const Json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_null()) return "nothing, or a number that is not finite";
  if (value.is_structured()) return std::string("an ") + value.type_name();
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

void refuse_value(const char* expected, const Json& found) {
  throw SchemaError("", std::string("expected ") + expected + ", found " + found_text(found));
}

std::optional<double> number_of(const Values& values, const std::string& name) {
  const Json* const value = find_value(values, name);
  if (value == nullptr || !value->is_number()) return std::nullopt;
  return value->get<double>();
}

const Json* find_value(const Values& values, const std::string& name) {
  const auto found = values.find(name);
  return found == values.end() ? nullptr : &found->second;
}

OptionValue detail::read_option_value(const Json& json) {
  try {
    return value_from(json, "");
  } catch (const UsageError& error) {
    const std::string what = error.what();  // ": expected …" or ".left: expected …"
    throw SchemaError("", what.substr(what.starts_with(": ") ? 2 : 1));
  }
}

JsonReader::JsonReader(const Json& json) : object_(json) {
  if (!json.is_object()) refuse_value("an object", json);
}

const Json* JsonReader::find(const char* key) {
  known_.push_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

bool JsonReader::is_known(const std::string& key) const {
  return std::any_of(known_.begin(), known_.end(), [&](const char* known) { return key == known; });
}

void JsonReader::rest(Values& values) {
  strict_ = false;
  for (const auto& [key, value] : object_.items()) {
    if (!is_known(key)) values[key] = value;
  }
}

void JsonReader::finish() const {
  if (!strict_) return;
  for (const auto& [key, value] : object_.items()) {
    if (is_known(key) || key == "type") continue;  // a message's name may stand in every object
    const std::string near = closest_word(key, {known_.begin(), known_.end()});
    throw SchemaError("/" + key.substr(0, 60),
                      "unknown key" + (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

void JsonSchema::put(const char* key, const char* about, const char* patch, Json schema) {
  if (*about != '\0') schema["description"] = about;
  schema.merge_patch(Json::parse(patch));
  schema_["properties"][key] = std::move(schema);
}

}  // namespace attnbench
