#include "harness/suite/values.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "harness/suite/schema_check.hpp"
#include "core/text/spelling.hpp"

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

std::string misfit(const OptionSpec& spec, const Ordered& value) {
  return "is " + shown(value) + "; expected " + expectation(spec);
}

std::optional<Json> in_range(const OptionSpec& spec, Json typed, std::string& complaint) {
  complaint = range_complaint(spec, typed.get<double>());
  return complaint.empty() ? std::optional<Json>(std::move(typed)) : std::nullopt;
}

std::optional<Json> window_value(const OptionSpec& spec, const Ordered& value,
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
  complaint = misfit(spec, value);
  return std::nullopt;
}

std::optional<Json> text_value(const OptionSpec& spec, const Ordered& value,
                               std::string& complaint) {
  const auto& choices = spec.choices;
  if (!value.is_string()) {
    complaint = misfit(spec, value);
    return std::nullopt;
  }
  const std::string word = value;
  if (!choices.empty() && std::find(choices.begin(), choices.end(), word) == choices.end()) {
    const std::string nearest = nearest_word(word, choices);
    complaint = misfit(spec, value);
    if (!nearest.empty()) complaint += "; did you mean \"" + nearest + "\"?";
    return std::nullopt;
  }
  return Json(word);
}

/// What no machine has memory or time for, whatever the mechanism: said here, before a forecast
/// takes minutes to say it.
std::int64_t greatest_of(const std::string& name) {
  const auto has = [&](const char* part) { return name.find(part) != std::string::npos; };
  if (has("seed")) return std::numeric_limits<std::int64_t>::max();
  if (has("examples") || has("steps") || name == "epochs") return most_repeated;
  return has("length") || has("window") ? longest_length : greatest_size;
}

/// The greatest value that is taken; null where there is none.
Json maximum_of(const OptionSpec& spec) {
  if (!spec.maximum.is_null() || spec.type != "integer" || greatest_of(spec.name) > most_repeated) {
    return spec.maximum;
  }
  return greatest_of(spec.name);
}

/// 1 for a bound that the catalogue has as 1.0.
std::string number_text(const Json& number) {
  const auto whole = whole_number(Ordered(number));
  return whole ? std::to_string(*whole) : number.dump();
}

}  // namespace

std::string expectation(const OptionSpec& spec) {
  if (spec.type == "text") {
    return spec.choices.empty() ? "a word" : "one of " + listed(spec.choices);
  }
  if (spec.type == "boolean") return "true or false";
  if (spec.type == "window") {
    return "a window: a count of keys of at least 1, or {\"left\": …, \"right\": …} of at least 0, "
           "each at most " +
           std::to_string(longest_length);
  }
  std::string text = spec.type == "integer" ? "an integer" : "a number";
  const Json maximum = maximum_of(spec);
  if (!spec.minimum.is_null() && !maximum.is_null()) {
    text += " from " + number_text(spec.minimum) + " to " + number_text(maximum);
  } else if (!spec.minimum.is_null()) {
    text += " of at least " + number_text(spec.minimum);
  } else if (!maximum.is_null()) {
    text += " of at most " + number_text(maximum);
  }
  if (spec.type == "integer") text += ", or a size such as \"length/2\"";
  return text;
}

std::string range_complaint(const OptionSpec& spec, double value) {
  const bool below = !spec.minimum.is_null() && value < spec.minimum.get<double>();
  const Json maximum = maximum_of(spec);
  const bool above = !maximum.is_null() && value > maximum.get<double>();
  if (!below && !above) return {};
  const bool whole = value == std::floor(value) && std::abs(value) < 1e15;
  const Ordered number = whole ? Ordered(static_cast<std::int64_t>(value)) : Ordered(value);
  return misfit(spec, number);
}

std::optional<Json> typed_value(const OptionSpec& spec, const Ordered& value,
                                std::string& complaint) {
  if (spec.type == "window") return window_value(spec, value, complaint);
  if (spec.type == "text") return text_value(spec, value, complaint);
  if (spec.type == "boolean" && value.is_boolean()) return Json(value);
  if (spec.type == "number" && value.is_number()) {
    return in_range(spec, Json(value.get<double>()), complaint);
  }
  if (spec.type == "integer") {
    if (value.is_string()) return Json(value);
    if (const auto number = whole_number(value)) return in_range(spec, Json(*number), complaint);
  }
  complaint = misfit(spec, value);
  return std::nullopt;
}

Json window_of(std::int64_t keys, bool causal) {
  const std::int64_t right = causal ? 0 : (keys - 1) / 2;
  return {{"left", keys - 1 - right}, {"right", right}};
}

}  // namespace attnbench::suite
