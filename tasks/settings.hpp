// Settings of tasks: their declarations, enumerations by name, and the sizes that tasks share.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/option.hpp"
#include "core/problem.hpp"

namespace attnbench::tasks {

Option integer_setting(const char* name, std::int64_t fallback, const char* meaning,
                       double minimum = 1);
Option number_setting(const char* name, double fallback, const char* meaning, double minimum = 0,
                      std::optional<double> maximum = {});
Option boolean_setting(const char* name, bool fallback, const char* meaning);
/// A text setting; any text where `choices` is empty.
Option text_setting(const char* name, const char* fallback, const char* meaning,
                    std::vector<std::string> choices = {});

void append(std::vector<Option>& settings, std::vector<Option> more);

/// The name of each value of an enumeration, in the order of a help text.
template <class Value, std::size_t N>
using Names = std::pair<const char*, Value>[N];

template <class Value, std::size_t N>
const char* name_of(const Names<Value, N>& names, Value value) {
  for (const auto& [name, one] : names) {
    if (one == value) return name;
  }
  return "";
}

template <class Value, std::size_t N>
std::vector<std::string> all_names(const Names<Value, N>& names) {
  std::vector<std::string> all;
  for (const auto& [name, value] : names) all.emplace_back(name);
  return all;
}

/// The value named `text`. Throws UsageError that lists the names.
template <class Value, std::size_t N>
Value value_named(const char* setting, const Names<Value, N>& names, const std::string& text) {
  std::string known;
  for (const auto& [name, value] : names) {
    if (text == name) return value;
    known += (known.empty() ? "" : ", ") + std::string(name);
  }
  throw UsageError(std::string(setting) + " must be one of " + known + ", not \"" + text + "\"");
}

/// The settings batch, heads, kv_heads, width, head_dim, value_dim, key_dim, dtype, input_scale. 0
/// means "derived".
std::vector<Option> size_settings();

/// The problem of `settings`, which hold those above and `length`; also `key_length` and `pattern`
/// where the task has them (otherwise: as many keys as queries, causal). Sizes of 0 are derived as
/// core/sizes.hpp says.
/// Throws UsageError where sizes contradict each other, naming both.
Problem problem_from(const Options& settings);

}  // namespace attnbench::tasks
