// A struct's JSON, in both directions, from one list of its members:
//
//   ATTNBENCH_JSON_CODEC(Stamp) {
//     JSON_AT(attnbench, abi);         // must be there
//     JSON_MAYBE(torch, compiler);     // may be missing; not written where empty
//     JSON_KEY(maybe, flags, "of the compiler", rule);   // described, for core/json_schema.hpp
//   }
//
// Members have the keys' names. Where they differ, or JSON holds a word, the functions of
// JsonReader and JsonWriter are called: json.at("new", value.changed). A key that is missing, of
// another type or unknown is an error with its place: "/cells/3/settings: expected an object, found
// 7". JSON_REST keeps unknown keys in `further`, JSON_IGNORE_REST leaves them out.
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/option_json.hpp"

namespace attnbench {

/// A value of another form than expected: "/cells/0/id: expected a string, found 3".
class SchemaError : public UsageError {
 public:
  SchemaError(std::string pointer, std::string misfit)
      : UsageError((pointer.empty() ? "/" : pointer) + ": " + misfit),
        pointer_(std::move(pointer)),
        misfit_(std::move(misfit)) {}
  /// The same error, seen from the value that has the faulty one as its member or item `key`.
  SchemaError inside(const std::string& key) const { return {"/" + key + pointer_, misfit_}; }

 private:
  std::string pointer_;
  std::string misfit_;
};

/// What a message says of a value that should be another: its text where that is short.
std::string found_text(const nlohmann::json& value);
/// Throws SchemaError: "expected `expected`, found …".
[[noreturn]] void refuse_value(const char* expected, const nlohmann::json& found);

using Json = nlohmann::json;
/// Values by name, where the names are not the result's: settings, options, metrics, rates.
using Values = Json::object_t;

/// The number of that name; nothing where there is none, or another kind of value.
std::optional<double> number_of(const Values& values, const std::string& name);
/// The value of that name; null where there is none.
const Json* find_value(const Values& values, const std::string& name);

namespace detail {

template <class T, template <class...> class Template>
constexpr bool is_made_of = false;
template <class... T, template <class...> class Template>
constexpr bool is_made_of<Template<T...>, Template> = true;

/// Whether T holds the number exactly; 1e3 is a whole number.
template <class T>
bool holds_number(const nlohmann::json& value) {
  if (value.is_number_unsigned()) return std::in_range<T>(value.get<std::uint64_t>());
  if (value.is_number_integer()) return std::in_range<T>(value.get<std::int64_t>());
  constexpr double exact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
  const double number = value.is_number() ? value.get<double>() : 0.5;
  return std::abs(number) <= exact && number == std::floor(number) &&
         std::in_range<T>(static_cast<std::int64_t>(number));
}

template <class T>
concept Map = requires {
  typename T::mapped_type;
};

OptionValue read_option_value(const nlohmann::json& json);

template <class T>
void read_value(const nlohmann::json& json, T& value);

template <class T>
void read_member(const std::string& key, const nlohmann::json& json, T& value) {
  try {
    read_value(json, value);
  } catch (const SchemaError& error) {
    throw error.inside(key);
  } catch (const UsageError& error) {
    throw SchemaError("/" + key, error.what());
  }
}

template <class T>
void read_value(const nlohmann::json& json, T& value) {
  if constexpr (std::is_same_v<T, nlohmann::json>) {
    value = json;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!json.is_boolean()) refuse_value("true or false", json);
    value = json.get<bool>();
  } else if constexpr (std::is_arithmetic_v<T>) {
    if (!json.is_number()) refuse_value("a number", json);
    if constexpr (std::is_integral_v<T>) {
      if (!holds_number<T>(json)) {
        refuse_value(std::is_unsigned_v<T> ? "a whole number of at least 0" : "a whole number",
                     json);
      }
    }
    value = json.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!json.is_string()) refuse_value("a string", json);
    value = json.get<std::string>();
  } else if constexpr (std::is_same_v<T, OptionValue>) {
    value = read_option_value(json);
  } else if constexpr (is_made_of<T, std::optional>) {
    read_value(json, value.emplace());
  } else if constexpr (is_made_of<T, std::vector>) {
    if (!json.is_array()) refuse_value("an array", json);
    value.resize(json.size());
    for (std::size_t i = 0; i < json.size(); ++i) read_member(std::to_string(i), json[i], value[i]);
  } else if constexpr (is_made_of<T, std::set>) {
    std::vector<typename T::value_type> items;
    read_value(json, items);
    value = {items.begin(), items.end()};
  } else if constexpr (Map<T>) {
    if (!json.is_object()) refuse_value("an object", json);
    value.clear();
    for (const auto& [key, part] : json.items()) read_member(key, part, value[key]);
  } else {
    from_json(json, value);
  }
}

}  // namespace detail

/// Reads an object key by key. Throws SchemaError.
class JsonReader {
 public:
  /// Refers to `json`, which must be an object.
  explicit JsonReader(const nlohmann::json& json);

  /// The name of a message, which was looked at before.
  void type(const char*) { known_.push_back("type"); }
  template <class T>
  void at(const char* key, T& member, const char* = "", const char* = "") {
    const nlohmann::json* const found = find(key);
    if (found == nullptr) {
      throw SchemaError(std::string("/") + key, "expected a value, found nothing");
    }
    detail::read_member(key, *found, member);
  }
  /// A key that may be missing: the member then keeps its value. JsonWriter leaves the key out
  /// where the member is empty or T{}.
  template <class T>
  void maybe(const char* key, T& member, const char* = "", const char* = "") {
    const nlohmann::json* const found = find(key);
    if (found != nullptr) detail::read_member(key, *found, member);
  }
  /// A key that may be missing when it is read, and is always written.
  template <class T>
  void usual(const char* key, T& member, const char* = "", const char* = "") {
    maybe(key, member);
  }
  /// A key that is among the rest, which the schema describes.
  void further(const char*, const char*, const char* = "") {}
  /// A member that JSON holds as a word.
  template <class T>
  void word(const char* key, T& member, const char* (*)(T), T (*from)(const std::string&)) {
    std::string word;
    at(key, word);
    try {
      member = from(word);
    } catch (const UsageError& error) {
      throw SchemaError(std::string("/") + key, error.what());
    }
  }
  /// Keeps the keys that were not asked for.
  void rest(Values& values);
  void ignore_rest() { strict_ = false; }
  /// Throws for a key that was not read, naming the closest known one, unless the rest was kept
  /// or left out.
  void finish() const;

 private:
  const nlohmann::json* find(const char* key);
  bool is_known(const std::string& key) const;

  const nlohmann::json& object_;
  std::vector<const char*> known_;
  bool strict_ = true;
};

/// Writes an object key by key; JsonReader describes the functions.
class JsonWriter {
 public:
  explicit JsonWriter(nlohmann::json& json) : json_(json) {}

  void type(const char* name) { json_["type"] = name; }
  template <class T>
  void at(const char* key, const T& member, const char* = "", const char* = "") {
    if constexpr (std::is_same_v<T, OptionValue> || std::is_same_v<T, OptionValues>) {
      json_[key] = attnbench::to_json(member);
    } else if constexpr (detail::is_made_of<T, std::optional>) {
      if (member) at(key, *member);
    } else {
      json_[key] = member;
    }
  }
  template <class T>
  void maybe(const char* key, const T& member, const char* = "", const char* = "") {
    if constexpr (requires { member.empty(); }) {
      if (!member.empty()) at(key, member);
    } else if (!(member == T{})) {
      at(key, member);
    }
  }
  template <class T>
  void maybe(const char* key, const std::optional<T>& member, const char* = "", const char* = "") {
    at(key, member);
  }
  template <class T>
  void usual(const char* key, const T& member, const char* = "", const char* = "") {
    at(key, member);
  }
  void further(const char*, const char*, const char* = "") {}
  template <class T>
  void word(const char* key, const T& member, const char* (*to)(T), T (*)(const std::string&)) {
    json_[key] = to(member);
  }
  void rest(const Values& values) { json_.update(values); }
  void ignore_rest() {}

 private:
  nlohmann::json& json_;
};

template <class T, class Struct>
concept OrConst = std::same_as<std::remove_const_t<T>, Struct>;

}  // namespace attnbench
// NOLINTBEGIN(bugprone-macro-parentheses): a type cannot stand in parentheses
/// Declares to_json and from_json of a struct. from_json throws SchemaError.
#define ATTNBENCH_JSON(Struct)                             \
  void to_json(nlohmann::json& json, const Struct& value); \
  void from_json(const nlohmann::json& json, Struct& value)

/// Defines from_json by the list of members that follows; unknown keys are left out.
#define ATTNBENCH_JSON_READER(Struct)                         \
  static void fields(auto& json, Struct& value);              \
  void from_json(const nlohmann::json& json, Struct& value) { \
    ::attnbench::JsonReader reader(json);                     \
    fields(reader, value);                                    \
  }                                                           \
  static void fields(auto& json, Struct& value)

/// Defines to_json alone.
#define ATTNBENCH_JSON_WRITER(Struct)                       \
  static void fields(auto& json, const Struct& value);      \
  void to_json(nlohmann::json& json, const Struct& value) { \
    json = nlohmann::json::object();                        \
    ::attnbench::JsonWriter writer(json);                   \
    fields(writer, value);                                  \
  }                                                         \
  static void fields(auto& json, const Struct& value)

/// Defines both by the list of members that follows, in the struct's own namespace.
#define ATTNBENCH_JSON_CODEC(Struct)                                        \
  static void fields(auto& json, ::attnbench::OrConst<Struct> auto& value); \
  void to_json(nlohmann::json& json, const Struct& value) {                 \
    json = nlohmann::json::object();                                        \
    ::attnbench::JsonWriter writer(json);                                   \
    fields(writer, value);                                                  \
  }                                                                         \
  void from_json(const nlohmann::json& json, Struct& value) {               \
    value = Struct{};                                                       \
    ::attnbench::JsonReader reader(json);                                   \
    fields(reader, value);                                                  \
    reader.finish();                                                        \
  }                                                                         \
  static void fields(auto& json, ::attnbench::OrConst<Struct> auto& value)
// NOLINTEND(bugprone-macro-parentheses)
#define ATTNBENCH_JSON_AT(member) json.at(#member, value.member);
#define ATTNBENCH_JSON_MAYBE(member) json.maybe(#member, value.member);
#define ATTNBENCH_JSON_USUAL(member) json.usual(#member, value.member);
#define ATTNBENCH_JSON_EACH(what, ...)                           \
  do {                                                           \
    NLOHMANN_JSON_EXPAND(NLOHMANN_JSON_PASTE(what, __VA_ARGS__)) \
  } while (false)
#define JSON_AT(...) ATTNBENCH_JSON_EACH(ATTNBENCH_JSON_AT, __VA_ARGS__)
#define JSON_MAYBE(...) ATTNBENCH_JSON_EACH(ATTNBENCH_JSON_MAYBE, __VA_ARGS__)
#define JSON_USUAL(...) ATTNBENCH_JSON_EACH(ATTNBENCH_JSON_USUAL, __VA_ARGS__)
/// One member by the function of that name, what it is, and a merge patch of its type's schema.
#define JSON_KEY(function, member, ...) json.function(#member, value.member, __VA_ARGS__)
#define JSON_REST json.rest(value.further)
#define JSON_IGNORE_REST json.ignore_rest()
