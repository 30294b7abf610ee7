#include "harness/suite/encoding.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

namespace attnbench::suite {
namespace {

bool starts_with(const std::string& text, const char* bytes, std::size_t count) {
  return text.compare(0, count, bytes, count) == 0;
}

bool is_tail(const std::string& text, std::size_t position) {
  return position < text.size() && (static_cast<unsigned char>(text[position]) & 0xC0) == 0x80;
}

/// Length of the UTF-8 sequence at `position`, 0 where it is not one (overlong forms, surrogates
/// and values beyond U+10FFFF included).
std::size_t sequence_length(const std::string& text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if (!is_tail(text, position + i)) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

EncodingFault encoding_fault(const std::string& text) {
  if (starts_with(text, "\xEF\xBB\xBF", 3)) {
    return {0, "the file begins with a byte order mark; save it as UTF-8 without one"};
  }
  if (starts_with(text, "\xFF\xFE", 2) || starts_with(text, "\xFE\xFF", 2)) {
    return {0, "the file is UTF-16; save it as UTF-8"};
  }
  for (std::size_t position = 0; position < text.size();) {
    if (text[position] == '\0') {
      return {position, "a zero byte stands here; is this a text file?"};
    }
    const std::size_t length = sequence_length(text, position);
    if (length == 0) {
      std::array<char, 8> hexadecimal{};
      std::snprintf(hexadecimal.data(), hexadecimal.size(), "0x%02x",
                    static_cast<unsigned>(static_cast<unsigned char>(text[position])));
      return {position, std::string("not UTF-8: byte ") + hexadecimal.data() +
                            " begins no character; save the file as UTF-8"};
    }
    position += length;
  }
  return {};
}

std::size_t line_of(const std::string& text, std::size_t position) {
  const auto end = text.begin() + static_cast<std::ptrdiff_t>(std::min(position, text.size()));
  return 1 + static_cast<std::size_t>(std::count(text.begin(), end, '\n'));
}

}  // namespace attnbench::suite
