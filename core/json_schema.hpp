// The JSON Schema (draft 7) of a struct, from the list of its members that also reads and writes
// it: a member's type, whether it must be there (JSON_AT), and what JSON_KEY says of it.
#pragma once

#include <type_traits>

#include "core/json_object.hpp"

namespace attnbench {

/// Merge patches (RFC 7396) of the schemas that follow from types.
struct Rule {
  static constexpr const char* positive = R"({"exclusiveMinimum": 0})";
  static constexpr const char* size = R"({"minimum": 0})";
  static constexpr const char* count = R"({"minimum": 1})";
  static constexpr const char* seconds =
      R"({"minimum": 1e-12, "maximum": 1e9,
          "title": "a positive number of seconds from 1e-12 to 1e9"})";
  static constexpr const char* text = R"({"type": "string"})";
  static constexpr const char* object = R"({"type": "object"})";
  static constexpr const char* numbers = R"({"additionalProperties": {"type": "number"}})";
  static constexpr const char* sizes =
      R"({"additionalProperties": {"type": "number", "minimum": 0}})";
  static constexpr const char* sizes_listed = R"({"items": {"type": "number", "minimum": 0}})";
  /// Ceilings by name, by device.
  static constexpr const char* rates = R"json({"additionalProperties": {
      "patternProperties": {"_(per_second|seconds)": {"type": "number"}}}})json";
};

/// The schema of a type.
template <class T>
Json schema_for();

/// Describes an object key by key; JsonReader describes the functions.
class JsonSchema {
 public:
  explicit JsonSchema(Json& schema) : schema_(schema) { schema_ = {{"type", "object"}}; }

  void type(const char*) {}
  template <class T>
  void at(const char* key, const T& member, const char* about = "", const char* patch = "{}") {
    maybe(key, member, about, patch);
    schema_["required"].push_back(key);
  }
  template <class T>
  void maybe(const char* key, const T&, const char* about = "", const char* patch = "{}") {
    put(key, about, patch, schema_for<T>());
  }
  template <class T>
  void usual(const char* key, const T& member, const char* about = "", const char* patch = "{}") {
    maybe(key, member, about, patch);
  }
  void further(const char* key, const char* about, const char* patch = "{}") {
    put(key, about, patch, Json::object());
  }
  void rest(const Values&) {}
  void ignore_rest() {}

 private:
  void put(const char* key, const char* about, const char* patch, Json schema);

  Json& schema_;
};

template <class T>
Json schema_for() {
  using namespace detail;
  if constexpr (requires(const T* none) { schema_of(none); }) {
    return schema_of(static_cast<const T*>(nullptr));
  } else if constexpr (std::is_same_v<T, bool>) {
    return {{"type", "boolean"}};
  } else if constexpr (std::is_integral_v<T>) {
    Json integer = {{"type", "integer"}};
    if constexpr (std::is_unsigned_v<T>) integer["minimum"] = 0;
    return integer;
  } else if constexpr (std::is_floating_point_v<T>) {
    return {{"type", "number"}};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return {{"type", "string"}};
  } else if constexpr (is_made_of<T, std::optional>) {
    return schema_for<typename T::value_type>();
  } else if constexpr (is_made_of<T, std::vector>) {
    return {{"type", "array"}, {"items", schema_for<typename T::value_type>()}};
  } else if constexpr (Map<T> && !std::is_same_v<T, Values>) {
    return {{"type", "object"}, {"additionalProperties", schema_for<typename T::mapped_type>()}};
  } else if constexpr (std::is_same_v<T, Json>) {
    return Json::object();  // anything
  } else {
    return {{"type", "object"}};
  }
}

}  // namespace attnbench

// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses
/// Declares to_json, from_json and schema_of of a struct.
#define ATTNBENCH_DESCRIBED(Struct) \
  ATTNBENCH_JSON(Struct);           \
  nlohmann::json schema_of(const Struct*)

/// Defines schema_of by the list of members that is defined elsewhere in the file.
#define ATTNBENCH_SCHEMA(Struct)                                            \
  static void fields(auto& json, ::attnbench::OrConst<Struct> auto& value); \
  nlohmann::json schema_of(const Struct*) {                                 \
    nlohmann::json schema;                                                  \
    ::attnbench::JsonSchema writer(schema);                                 \
    const Struct none{};                                                    \
    fields(writer, none);                                                   \
    return schema;                                                          \
  }

/// Defines all three by the list of members that follows, in the struct's own namespace.
#define ATTNBENCH_DESCRIBED_CODEC(Struct) \
  ATTNBENCH_SCHEMA(Struct)                \
  ATTNBENCH_JSON_CODEC(Struct)
// NOLINTEND(bugprone-macro-parentheses)
