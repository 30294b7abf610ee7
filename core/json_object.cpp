#include "core/json_object.hpp"

#include <algorithm>

#include "core/option.hpp"

namespace attnbench {
namespace {

std::string shown(const nlohmann::json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  std::string text = value.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

}  // namespace

JsonObject::JsonObject(const nlohmann::json& value) : object_(value) {
  if (!value.is_object()) throw UsageError("expected an object, found " + shown(value));
}

const nlohmann::json* JsonObject::find(const char* key) {
  known_.emplace_back(key);
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const nlohmann::json& JsonObject::member(const char* key) {
  const nlohmann::json* const found = find(key);
  if (found == nullptr) throw UsageError(std::string(key) + ": expected a value, found nothing");
  return *found;
}

void JsonObject::fail(const std::string& place, const char* expected, const nlohmann::json& found) {
  throw UsageError(place + ": expected " + expected + ", found " + shown(found));
}

void JsonObject::expect_no_more() const {
  for (const auto& [key, value] : object_.items()) {
    if (std::find(known_.begin(), known_.end(), key) != known_.end()) continue;
    const std::string near = closest_word(key, known_);
    throw UsageError(key.substr(0, 60) + ": unknown key" +
                     (near.empty() ? "" : "; did you mean \"" + near + "\"?"));
  }
}

}  // namespace attnbench
