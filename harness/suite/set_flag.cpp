#include "harness/suite/set_flag.hpp"

#include <charconv>
#include <optional>

#include "core/failure.hpp"
#include "core/text/printable.hpp"
#include "core/json_file.hpp"

namespace attnbench::suite {
namespace {

using Ordered = nlohmann::ordered_json;

constexpr std::size_t most_values = 10000;

std::optional<std::int64_t> integer_from(const std::string& text) {
  std::int64_t number = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, number);
  if (error != std::errc() || stop != end) return std::nullopt;
  return number;
}

/// Discarded where the text is not JSON, or nested deeper than any value of a setting.
Ordered value_of(const std::string& text) {
  constexpr std::size_t deepest = 8;
  if (!result::bounds_fault(text, {deepest, result::mebibyte}).reason.empty()) {
    return Ordered(Ordered::value_t::discarded);
  }
  return Ordered::parse(text, nullptr, false);
}

/// What JSON reads as a number, true or false is one; anything else is a word.
Ordered scalar_from(const std::string& text) {
  const Ordered value = value_of(text);
  return value.is_number() || value.is_boolean() ? value : Ordered(text);
}

/// FIRST..LAST doubles, FIRST..LAST:STEP adds.
void append_range(Ordered& values, const std::string& text, const SetFlag& flag) {
  const std::size_t dots = text.find("..");
  const std::size_t colon = text.find(':', dots);
  const auto first = integer_from(text.substr(0, dots));
  const auto last = integer_from(text.substr(dots + 2, colon - dots - 2));
  const auto step = colon == std::string::npos ? std::optional<std::int64_t>(0)
                                               : integer_from(text.substr(colon + 1));
  if (!first || !last || !step || *first < 1 || *last < *first ||
      (colon != std::string::npos && *step < 1)) {
    throw UsageFailure(flag.place + "\"" + result::quotable(text) +
                       "\" is no range; expected FIRST..LAST, which doubles, or FIRST..LAST:STEP, "
                       "of positive integers");
  }
  for (std::int64_t value = *first; value <= *last;) {
    if (values.size() >= most_values) {
      throw UsageFailure(flag.place + "\"" + result::quotable(text) + "\" has more than " +
                         std::to_string(most_values) + " values; expected a greater step");
    }
    values.push_back(value);
    if (__builtin_add_overflow(value, *step == 0 ? value : *step, &value)) break;
  }
}

}  // namespace

SetFlag parse_set_flag(const std::string& text) {
  SetFlag flag;
  const std::size_t equals = text.find('=');
  flag.place = "--set " + result::quotable(text) + ": ";
  if (equals == std::string::npos || equals == 0) {
    throw UsageFailure(flag.place + "expected NAME=VALUE, such as length=256..8192");
  }
  flag.key = text.substr(0, equals);
  flag.values = Ordered::array();
  std::string rest = text.substr(equals + 1);
  if (!rest.empty() && (rest.front() == '{' || rest.front() == '[')) {
    const Ordered value = value_of(rest);
    if (value.is_discarded() || (value.is_array() && value.empty())) {
      throw UsageFailure(flag.place + "the value is no JSON that has a value");
    }
    flag.values = value.is_array() ? value : Ordered::array({value});
    return flag;
  }
  for (;;) {
    const std::size_t comma = rest.find(',');
    const std::string item = rest.substr(0, comma);
    if (item.empty()) throw UsageFailure(flag.place + "a value is missing; expected NAME=VALUE");
    if (item.find("..") != std::string::npos) {
      append_range(flag.values, item, flag);
    } else {
      flag.values.push_back(scalar_from(item));
    }
    if (comma == std::string::npos) return flag;
    rest = rest.substr(comma + 1);
  }
}

}  // namespace attnbench::suite
