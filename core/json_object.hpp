// JsonObject: reads an object key by key. A key that is missing, of another type or unknown is an
// error that names its place, such as "cells.3.settings: expected an object, found 7".
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/errors.hpp"

namespace attnbench {

class JsonObject {
 public:
  /// Refers to `value`. Throws UsageError unless it is an object. The key "type", which names a
  /// message, is known in every object.
  explicit JsonObject(const nlohmann::json& value);

  /// The value of a key. Throws UsageError where it is missing or is no T; the places that a codec
  /// of T names get the key in front.
  template <class T>
  T at(const char* key) {
    return read<T>(member(key), key);
  }
  /// The same, or `fallback` where the key is missing.
  template <class T>
  T value(const char* key, T fallback) {
    const nlohmann::json* const found = find(key);
    return found == nullptr ? fallback : read<T>(*found, key);
  }
  template <class T>
  std::optional<T> optional(const char* key) {
    const nlohmann::json* const found = find(key);
    return found == nullptr ? std::nullopt : std::optional<T>(read<T>(*found, key));
  }
  /// Throws UsageError for a key that nobody asked for, naming the closest known one. The last call
  /// of each codec.
  void expect_no_more() const;

 private:
  const nlohmann::json* find(const char* key);
  const nlohmann::json& member(const char* key);
  [[noreturn]] static void fail(const std::string& place, const char* expected,
                                const nlohmann::json& found);

  template <class T>
  static T read(const nlohmann::json& value, const std::string& place);
  template <class T>
  static std::vector<T> read_list(const nlohmann::json& value, const std::string& place,
                                  const std::vector<T>*) {
    if (!value.is_array()) fail(place, "a list", value);
    std::vector<T> list;
    for (std::size_t i = 0; i < value.size(); ++i) {
      list.push_back(read<T>(value[i], place + "." + std::to_string(i)));
    }
    return list;
  }

  const nlohmann::json& object_;
  std::vector<std::string> known_{"type"};
};

namespace detail {
template <class T>
struct is_vector : std::false_type {};
template <class T>
struct is_vector<std::vector<T>> : std::true_type {};
}  // namespace detail

template <class T>
T JsonObject::read(const nlohmann::json& value, const std::string& place) {
  if constexpr (std::is_same_v<T, nlohmann::json>) {
    return value;
  } else if constexpr (std::is_same_v<T, bool>) {
    if (!value.is_boolean()) fail(place, "true or false", value);
    return value.get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    const char* const expected =
        std::is_unsigned_v<T> ? "a whole number of at least 0" : "a whole number";
    if (!value.is_number_integer()) fail(place, expected, value);
    const bool fits = value.is_number_unsigned() ? std::in_range<T>(value.get<std::uint64_t>())
                                                 : std::in_range<T>(value.get<std::int64_t>());
    if (!fits) fail(place, expected, value);
    return value.get<T>();
  } else if constexpr (std::is_floating_point_v<T>) {
    if (!value.is_number()) fail(place, "a number", value);
    return value.get<T>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value.is_string()) fail(place, "a text", value);
    return value.get<std::string>();
  } else if constexpr (detail::is_vector<T>::value) {
    return read_list(value, place, static_cast<const T*>(nullptr));
  } else {
    try {
      return value.get<T>();
    } catch (const UsageError& error) {
      const std::string what = error.what();
      throw UsageError(place + (what.starts_with("expected ") ? ": " : ".") + what);
    } catch (const nlohmann::json::exception&) {
      fail(place, "another type", value);
    }
  }
}

}  // namespace attnbench
