#include "core/text/printable.hpp"

#include <array>
#include <cstdint>
#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <streambuf>
#include <vector>

namespace attnbench::text {
namespace {

constexpr const char* replacement = "\xEF\xBF\xBD";
constexpr std::string_view gap = " … ";

std::uint32_t character_at(std::string_view text, std::size_t position, std::size_t length) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  if (length == 1) return byte(0);
  std::uint32_t character = byte(0) & (0xFFu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) character = (character << 6) | (byte(i) & 0x3Fu);
  return character;
}

/// Controls (C0, DEL, C1), line and paragraph separators, marks of direction, and what no XML may
/// hold, pictures among it.
bool is_hidden(std::uint32_t character) {
  return character < 0x20 || (character >= 0x7F && character < 0xA0) || character == 0x200E ||
         character == 0x200F || (character >= 0x2028 && character <= 0x202E) ||
         (character >= 0x2066 && character <= 0x2069) || character == 0xFEFF ||
         character == 0xFFFE || character == 0xFFFF;
}

void append_character(std::string& out, std::string_view text, std::size_t position,
                      std::size_t length, Breaks breaks) {
  const std::uint32_t character = character_at(text, position, length);
  const bool is_break = character == '\n' || character == '\t';
  if (!is_hidden(character) || (is_break && breaks == Breaks::kept)) {
    out.append(text.substr(position, length));
    return;
  }
  std::array<char, 8> escaped{};
  std::snprintf(escaped.data(), escaped.size(), "\\u%04x", static_cast<unsigned>(character));
  out.append(escaped.data());
}

bool is_plain(std::string_view text) {
  for (const char character : text) {
    const auto byte = static_cast<unsigned char>(character);
    if (byte < 0x20 || byte >= 0x7F) return false;
  }
  return true;
}

/// The number of bytes at the end of `text` that may begin an incomplete UTF-8 character.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if ((byte & 0xC0) == 0x80) continue;
    const std::size_t wanted = byte >= 0xF0 ? 4 : byte >= 0xE0 ? 3 : byte >= 0xC0 ? 2 : 1;
    return wanted > back ? back : 0;
  }
  return 0;
}

/// Passes printable text on. A character may arrive in two parts.
class PrintableBuffer : public std::streambuf {
 public:
  explicit PrintableBuffer(std::streambuf* to) : to_(to) {}
  ~PrintableBuffer() override { pass_on(pending_.size()); }

 protected:
  int_type overflow(int_type character) override {
    if (traits_type::eq_int_type(character, traits_type::eof()))
      return traits_type::not_eof(character);
    const char byte = traits_type::to_char_type(character);
    return xsputn(&byte, 1) == 1 ? character : traits_type::eof();
  }
  std::streamsize xsputn(const char* text, std::streamsize count) override {
    pending_.append(text, static_cast<std::size_t>(count));
    return pass_on(pending_.size() - unfinished(pending_)) ? count : 0;
  }
  int sync() override { return to_->pubsync(); }

 private:
  bool pass_on(std::size_t count) {
    const std::string text = printable(std::string_view(pending_).substr(0, count), Breaks::kept);
    pending_.erase(0, count);
    const auto size = static_cast<std::streamsize>(text.size());
    return to_->sputn(text.data(), size) == size;
  }

  std::streambuf* to_;
  std::string pending_;
};

/// `text` without its middle, cut between characters.
std::string without_middle(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  const auto is_tail = [&](std::size_t i) {
    return i < text.size() && (static_cast<unsigned char>(text[i]) & 0xC0) == 0x80;
  };
  const std::size_t room = longest - gap.size();
  std::size_t head = room * 2 / 3;
  std::size_t tail = text.size() - (room - head);
  while (head > 0 && is_tail(head)) --head;
  while (is_tail(tail)) ++tail;
  return text.substr(0, head).append(gap).append(text, tail);
}

}  // namespace

std::size_t letter_length(std::string_view text, std::size_t position) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[position + i]); };
  const unsigned char lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (position + length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
  }
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

bool is_utf8_text(std::string_view text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = letter_length(text, i);
    if (length == 0) return false;
    i += length;
  }
  return true;
}

std::string printable(std::string_view text, Breaks breaks) {
  if (is_plain(text)) return std::string(text);
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = letter_length(text, i);
    if (length == 0) {
      out.append(replacement);
      ++i;
      continue;
    }
    append_character(out, text, i, length, breaks);
    i += length;
  }
  return out;
}

nlohmann::json printable_json(const nlohmann::json& value) {
  if (value.is_string()) return printable(value.get_ref<const std::string&>(), Breaks::kept);
  if (value.is_array()) {
    nlohmann::json items = nlohmann::json::array();
    for (const auto& item : value) items.push_back(printable_json(item));
    return items;
  }
  if (!value.is_object()) return value;
  nlohmann::json members = nlohmann::json::object();
  for (const auto& [key, member] : value.items()) members[printable(key)] = printable_json(member);
  return members;
}

std::string quotable(std::string_view text, std::size_t longest) {
  // Four bytes are the longest character: later bytes need no check.
  const std::size_t enough = 4 * longest;
  if (text.size() <= 2 * enough) return without_middle(printable(text), longest);
  const std::string ends =
      printable(text.substr(0, enough)) + printable(text.substr(text.size() - enough));
  return without_middle(ends, longest);
}

std::string bounded_message(const std::string& text, std::size_t longest) {
  if (text.size() <= longest) return text;
  constexpr std::size_t room_for_count = 40;
  std::string kept;
  std::size_t left_out = 0;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = without_middle(text.substr(begin, end - begin), longest / 2);
    if (left_out == 0 && kept.size() + line.size() + 1 + room_for_count <= longest) {
      kept.append(kept.empty() ? "" : "\n").append(line);
    } else {
      ++left_out;
    }
    begin = end + 1;
  }
  if (left_out > 0) kept += "\n… and " + std::to_string(left_out) + " more lines";
  return kept;
}

PrintableOutput::PrintableOutput(std::ostream& stream)
    : stream_(stream), before_(stream.rdbuf(new PrintableBuffer(stream.rdbuf()))) {}

PrintableOutput::~PrintableOutput() {
  stream_.flush();
  delete stream_.rdbuf(before_);
}

namespace {

std::string replaced(const std::string& text, const std::map<char, std::string>& words) {
  std::string result;
  for (const char character : text) {
    const auto found = words.find(character);
    if (found == words.end()) {
      result += character;
    } else {
      result += found->second;
    }
  }
  return result;
}

}  // namespace

std::string escape_html(const std::string& text) {
  static const std::map<char, std::string> words{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  return replaced(text, words);
}

std::string escape_latex(const std::string& text) {
  static const std::map<char, std::string> words{{'\\', "\\textbackslash{}"},
                                                 {'{', "\\{"},
                                                 {'}', "\\}"},
                                                 {'&', "\\&"},
                                                 {'%', "\\%"},
                                                 {'$', "\\$"},
                                                 {'#', "\\#"},
                                                 {'_', "\\_"},
                                                 {'~', "\\textasciitilde{}"},
                                                 {'^', "\\textasciicircum{}"},
                                                 {'<', "\\textless{}"},
                                                 {'>', "\\textgreater{}"},
                                                 {'\n', " "}};
  return replaced(text, words);
}

std::string escape_markdown(const std::string& text) {
  static const std::map<char, std::string> words{{'|', "\\|"}, {'\n', " "},   {'*', "\\*"},
                                                 {'_', "\\_"}, {'<', "&lt;"}, {'`', "\\`"}};
  return replaced(text, words);
}

std::string name_in_sentence(const std::string& name) {
  return name.find_first_of(",;") == std::string::npos ? name : '"' + name + '"';
}

std::string escape_csv(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char character : text) quoted.append(character == '"' ? 2 : 1, character);
  return quoted += '"';
}

}  // namespace attnbench::text
