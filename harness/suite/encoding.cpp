#include "harness/suite/encoding.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include "core/text/printable.hpp"

namespace attnbench::suite {
namespace {

bool starts_with(const std::string& text, const char* bytes, std::size_t count) {
  return text.compare(0, count, bytes, count) == 0;
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
    const std::size_t length = result::letter_length(text, position);
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
