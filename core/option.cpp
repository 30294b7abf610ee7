#include "core/option.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <stdexcept>

#include "core/errors.hpp"
#include "core/option_json.hpp"
#include "core/text/spelling.hpp"

namespace attnbench {
namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20) {
      char escape[8];
      std::snprintf(escape, sizeof escape, "\\u%04x", static_cast<unsigned>(c));
      out += escape;
    } else {
      out += c;
    }
  }
  return out + '"';
}

OptionType type_of(const OptionValue& value) {
  constexpr OptionType types[] = {OptionType::integer, OptionType::number, OptionType::boolean,
                                  OptionType::text, OptionType::window};
  return types[value.index()];
}

/// `value` as `type`, or nothing. A number without a fraction converts to an integer.
std::optional<OptionValue> converted(const OptionValue& value, OptionType type) {
  if (type_of(value) == type) return value;
  if (type == OptionType::number && type_of(value) == OptionType::integer) {
    return static_cast<double>(std::get<std::int64_t>(value));
  }
  if (type == OptionType::integer && type_of(value) == OptionType::number) {
    const double number = std::get<double>(value);
    if (std::trunc(number) == number && std::abs(number) < 9.0e15) {
      return static_cast<std::int64_t>(number);
    }
  }
  return std::nullopt;
}

std::string plain(double number) {
  return to_string(std::trunc(number) == number && std::abs(number) < 9.0e15
                       ? OptionValue(static_cast<std::int64_t>(number))
                       : OptionValue(number));
}

void check_range(const Option& option, double number) {
  if (in_range(option, number)) return;
  const std::string range = range_text(option);
  throw UsageError("option " + option.name + " must be " + (range.empty() ? "finite" : range) +
                   ", not " + plain(number));
}

void check_value(const Option& option, const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) {
    check_range(option, static_cast<double>(*integer));
  } else if (const auto* number = std::get_if<double>(&value)) {
    check_range(option, *number);
  } else if (const auto* text = std::get_if<std::string>(&value)) {
    const auto& choices = option.choices;
    if (choices.empty() || std::count(choices.begin(), choices.end(), *text) != 0) return;
    throw UsageError("option " + option.name + " must be one of " + word_list(choices) + ", not " +
                     quoted(*text) + did_you_mean(*text, choices));
  } else if (const auto* window = std::get_if<Window>(&value)) {
    if (window->left < 0 || window->right < 0) {
      throw UsageError("option " + option.name + " must not be negative on either side, not " +
                       to_string(value));
    }
  }
}

[[noreturn]] void refuse_name(const std::string& name, const std::vector<Option>& declared) {
  std::vector<std::string> known;
  known.reserve(declared.size());
  for (const auto& option : declared) known.push_back(option.name);
  if (known.empty()) throw UsageError("unknown option " + name + ": there are no options here");
  throw UsageError("unknown option " + name + did_you_mean(name, known) +
                   " The options are: " + word_list(known));
}

template <class T>
const T& read(const std::map<std::string, OptionValue>& values, const std::string& name,
              OptionType type) {
  const auto found = values.find(name);
  if (found == values.end()) throw std::logic_error("option " + name + " is not declared");
  const T* value = std::get_if<T>(&found->second);
  if (value == nullptr) {
    throw std::logic_error("option " + name + " is read as " + to_string(type) + " but is " +
                           to_string(type_of(found->second)));
  }
  return *value;
}

}  // namespace

Options Options::resolve(const std::vector<Option>& declared,
                         const std::map<std::string, OptionValue>& said) {
  Options options;
  for (const auto& option : declared) options.set(option.name, option.fallback);
  for (const auto& [name, value] : said) {
    const auto option = std::find_if(declared.begin(), declared.end(),
                                     [&, key = &name](const Option& o) { return o.name == *key; });
    if (option == declared.end()) refuse_name(name, declared);
    const auto taken = converted(value, option->type);
    if (!taken) {
      throw UsageError("option " + name + " must be a" +
                       (option->type == OptionType::integer ? "n " : " ") +
                       to_string(option->type) + ", not " + to_string(value));
    }
    check_value(*option, *taken);
    options.set(name, *taken);
  }
  return options;
}

std::int64_t Options::integer(const std::string& name) const {
  return read<std::int64_t>(values_, name, OptionType::integer);
}
double Options::number(const std::string& name) const {
  return read<double>(values_, name, OptionType::number);
}
bool Options::boolean(const std::string& name) const {
  return read<bool>(values_, name, OptionType::boolean);
}
const std::string& Options::text(const std::string& name) const {
  return read<std::string>(values_, name, OptionType::text);
}
Window Options::window(const std::string& name) const {
  return read<Window>(values_, name, OptionType::window);
}

bool in_range(const Option& option, double number) {
  const bool low = option.minimum && number < *option.minimum;
  const bool high = option.maximum && number > *option.maximum;
  return !low && !high && std::isfinite(number);
}

std::string range_text(const Option& option) {
  if (option.minimum && option.maximum) {
    return "from " + plain(*option.minimum) + " to " + plain(*option.maximum);
  }
  if (option.minimum) return "at least " + plain(*option.minimum);
  return option.maximum ? "at most " + plain(*option.maximum) : std::string();
}

std::string closest_word(const std::string& word, const std::vector<std::string>& known) {
  return text::nearest_word(word, known);
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& known) {
  const std::string near = closest_word(word, known);
  return near.empty() ? "" : "; did you mean " + near + "?";
}

std::string word_list(const std::vector<std::string>& words) {
  std::string list;
  for (const auto& word : words) list += (list.empty() ? "" : ", ") + word;
  return list;
}

std::string to_string(const OptionValue& value) {
  if (const auto* integer = std::get_if<std::int64_t>(&value)) return std::to_string(*integer);
  if (const auto* boolean = std::get_if<bool>(&value)) return *boolean ? "true" : "false";
  if (const auto* text = std::get_if<std::string>(&value)) return quoted(*text);
  if (const auto* window = std::get_if<Window>(&value)) {
    return "{\"left\":" + std::to_string(window->left) +
           ",\"right\":" + std::to_string(window->right) + "}";
  }
  // The shortest text that reads back as the same number.
  const double number = std::get<double>(value);
  char text[40];
  for (int digits = 1; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, number);
    if (std::strtod(text, nullptr) == number) break;
  }
  return text;
}

const char* to_string(OptionType type) {
  switch (type) {
    case OptionType::integer:
      return "integer";
    case OptionType::number:
      return "number";
    case OptionType::boolean:
      return "boolean";
    case OptionType::text:
      return "text";
    case OptionType::window:
      return "window";
  }
  throw std::logic_error("option type out of range");
}

Window window_of(std::int64_t keys, bool causal) {
  const std::int64_t right = causal ? 0 : (keys - 1) / 2;
  return {keys - 1 - right, right};
}

}  // namespace attnbench
