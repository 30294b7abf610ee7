#include "core/text/colour.hpp"

#include <unistd.h>

#include <cctype>
#include <cstdlib>
#include <map>

namespace attnbench::text {
namespace {

const std::map<std::string_view, Colour>& coloured_words() {
  static const std::map<std::string_view, Colour> words{
      {"FAST", Colour::green},     {"SLOW", Colour::red},       {"UNCLEAR", Colour::yellow},
      {"wrong", Colour::red},      {"crashed", Colour::red},    {"error", Colour::red},
      {"timeout", Colour::yellow}, {"skipped", Colour::yellow}, {"out_of_memory", Colour::yellow},
      {"failed", Colour::red},     {"ok", Colour::green},       {"disturbed", Colour::yellow},
      {"unsteady", Colour::yellow}};
  return words;
}

bool is_word_letter(char letter) {
  return std::isalnum(static_cast<unsigned char>(letter)) != 0 || letter == '_';
}

}  // namespace

bool shows_colour(std::FILE* stream) {
  const char* const none = std::getenv("NO_COLOR");
  const char* const kind = std::getenv("TERM");
  if (none != nullptr && *none != '\0') return false;
  if (kind != nullptr && std::string_view(kind) == "dumb") return false;
  return isatty(fileno(stream)) != 0;
}

std::string coloured(std::string_view text, Colour colour) {
  const char* code = "1";
  if (colour == Colour::red) code = "31";
  if (colour == Colour::green) code = "32";
  if (colour == Colour::yellow) code = "33";
  return "\x1b[" + std::string(code) + "m" + std::string(text) + "\x1b[0m";
}

std::string with_coloured_words(std::string_view text) {
  std::string out;
  for (std::size_t begin = 0; begin < text.size();) {
    std::size_t end = begin;
    while (end < text.size() && is_word_letter(text[end])) ++end;
    const std::string_view word = text.substr(begin, end - begin);
    const auto found = coloured_words().find(word);
    if (found != coloured_words().end()) {
      out += coloured(word, found->second);
    } else {
      out += word;
    }
    if (end < text.size()) out += text[end++];
    begin = end;
  }
  return out;
}

}  // namespace attnbench::text
