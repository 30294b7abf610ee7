#include "core/sequence_lengths.hpp"

#include <charconv>
#include <optional>

#include "core/errors.hpp"
#include "core/sizes.hpp"
#include "core/text/printable.hpp"

namespace attnbench {
namespace {

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') + 1 - first);
}

std::optional<std::int64_t> whole_number(std::string_view text) {
  text = without_spaces(text);
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

[[noreturn]] void refuse_lengths(const std::string& text, const std::string& why) {
  throw UsageError("lengths \"" + text::quotable(text) + "\": " + why +
                   "; expected the tokens of each sequence, 1 to " +
                   std::to_string(longest_length) +
                   ", joined by +, as in \"100+2000+512\" or, for eight of 512, \"8x512+4096\"");
}

std::int64_t within(const std::string& text, const char* what, std::string_view word,
                    std::int64_t most) {
  const std::optional<std::int64_t> number = whole_number(word);
  if (!number) refuse_lengths(text, "\"" + text::quotable(std::string(word)) + "\" is no " + what);
  if (*number < 1 || *number > most) {
    refuse_lengths(text, std::to_string(*number) + " is no " + what);
  }
  return *number;
}

}  // namespace

std::vector<std::int64_t> sequence_lengths(const std::string& text) {
  std::vector<std::int64_t> lengths;
  if (text.empty()) return lengths;
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t plus = rest.find('+');
    more = plus != std::string_view::npos;
    const std::string_view part = rest.substr(0, plus);
    if (more) rest.remove_prefix(plus + 1);
    const std::size_t times = part.find('x');
    const bool counted = times != std::string_view::npos;
    const std::int64_t count =
        counted ? within(text, "count of sequences", part.substr(0, times), max_size) : 1;
    const std::int64_t length =
        within(text, "length", counted ? part.substr(times + 1) : part, longest_length);
    if (count > max_size - static_cast<std::int64_t>(lengths.size())) {
      refuse_lengths(text, "it has more than " + std::to_string(max_size) + " sequences");
    }
    lengths.insert(lengths.end(), static_cast<std::size_t>(count), length);
  }
  return lengths;
}

std::string sequence_lengths_text(const std::vector<std::int64_t>& lengths) {
  std::string text;
  for (std::size_t i = 0; i < lengths.size();) {
    std::size_t end = i;
    while (end < lengths.size() && lengths[end] == lengths[i]) ++end;
    if (!text.empty()) text += "+";
    if (end - i > 1) text += std::to_string(end - i) + "x";
    text += std::to_string(lengths[i]);
    i = end;
  }
  return text;
}

}  // namespace attnbench
