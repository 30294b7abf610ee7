#include "harness/program/suite/values.hpp"

#include <algorithm>
#include <cmath>

#include "core/option_json.hpp"
#include "core/text/spelling.hpp"
#include "harness/program/suite/schema_check.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

/// Integers, and numbers such as 1e3 that are one exactly.
std::optional<std::int64_t> whole_number(const Ordered& value) {
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return std::nullopt;
  const double number = value.get<double>();
  constexpr double exact = 9007199254740992.0;  // 2^53: beyond it doubles skip integers
  if (std::abs(number) > exact || number != std::floor(number)) return std::nullopt;
  return static_cast<std::int64_t>(number);
}

std::string misfit(const Option& option, const Ordered& value) {
  return "is " + shown(value) + "; expected " + expectation(option);
}

/// The maximum of an integer option that declares none: no machine has memory or time for more.
/// Seeds have no maximum.
std::optional<double> usual_maximum(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("seed")) return std::nullopt;
  if (has("examples") || has("steps") || name == "epochs") return max_repeated;
  return has("length") || has("window") ? longest_length : max_size;
}

Option bounded(Option option) {
  if (option.type == OptionType::integer && !option.maximum) {
    option.maximum = usual_maximum(option.name);
  }
  return option;
}

std::optional<Json> within_range(const Option& option, Json typed, std::string& complaint) {
  complaint = range_complaint(option, typed.get<double>());
  return complaint.empty() ? std::optional<Json>(std::move(typed)) : std::nullopt;
}

std::optional<Json> window_value(const Option& option, const Ordered& value,
                                 std::string& complaint) {
  if (value.is_string()) return Json(value);
  if (const auto keys = whole_number(value)) {
    if (*keys >= 1 && *keys <= longest_length) return Json(*keys);
  }
  if (value.is_object() && value.size() == 2 && value.contains("left") && value.contains("right")) {
    const auto fits = [](const Ordered& side) {
      return side.is_string() || (side.is_number_integer() && side.get<std::int64_t>() >= 0 &&
                                  side.get<std::int64_t>() <= longest_length);
    };
    if (fits(value["left"]) && fits(value["right"])) return Json(value);
  }
  complaint = misfit(option, value);
  return std::nullopt;
}

std::optional<Json> text_value(const Option& option, const Ordered& value, std::string& complaint) {
  const auto& choices = option.choices;
  if (!value.is_string()) {
    complaint = misfit(option, value);
    return std::nullopt;
  }
  const std::string word = value;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), word) == choices.end()) {
    const std::string nearest = text::nearest_word(word, choices);
    complaint = misfit(option, value);
    if (!nearest.empty()) complaint += "; did you mean \"" + nearest + "\"?";
    return std::nullopt;
  }
  return Json(word);
}

}  // namespace

std::string expectation(const Option& declared) {
  const Option option = bounded(declared);
  switch (option.type) {
    case OptionType::text:
      if (!option.choices.empty()) return "one of " + text::listed(option.choices);
      return option.meaning.empty() ? "a word" : "a word: " + option.meaning;
    case OptionType::boolean:
      return "true or false";
    case OptionType::window:
      return "a window: a count of keys of at least 1, or {\"left\": …, \"right\": …} of at "
             "least 0, each at most " +
             std::to_string(longest_length);
    case OptionType::integer:
    case OptionType::number:
      break;
  }
  const bool integer = option.type == OptionType::integer;
  std::string range = range_text(option);
  if (!range.empty()) range.insert(0, option.minimum && option.maximum ? " " : " of ");
  return (integer ? "an integer" : "a number") + range +
         (integer ? ", or a size such as \"length/2\"" : "");
}

std::string range_complaint(const Option& option, double value) {
  if (in_range(bounded(option), value)) return {};
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  return misfit(option, whole ? Ordered(static_cast<std::int64_t>(value)) : Ordered(value));
}

std::optional<Json> typed_value(const Option& option, const Ordered& value,
                                std::string& complaint) {
  if (option.type == OptionType::window) return window_value(option, value, complaint);
  if (option.type == OptionType::text) return text_value(option, value, complaint);
  if (option.type == OptionType::boolean && value.is_boolean()) return Json(value);
  if (option.type == OptionType::number && value.is_number()) {
    return within_range(option, Json(value.get<double>()), complaint);
  }
  if (option.type == OptionType::integer) {
    if (value.is_string()) return Json(value);
    if (const auto number = whole_number(value)) {
      return within_range(option, Json(*number), complaint);
    }
  }
  complaint = misfit(option, value);
  return std::nullopt;
}

}  // namespace attnbench::suite
