// Text that came from outside, made safe to show: no control character of a file, a plugin or a
// suite reaches a terminal, a picture or a page, and no message is longer than a screen.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <ostream>
#include <string>
#include <string_view>

namespace attnbench::text {

/// What becomes of line breaks and tabs.
enum class Breaks { escaped, kept };

/// Length of the UTF-8 letter at `position`; 0 where none begins (overlong forms, surrogates and
/// values beyond U+10FFFF included).
std::size_t letter_length(std::string_view text, std::size_t position);

/// Whether all of it is UTF-8.
bool is_utf8_text(std::string_view text);

/// `text` with control characters and those that change the direction of writing as \u001b, which
/// is the same string where the text is JSON, and with U+FFFD for each byte that is not UTF-8.
std::string printable(std::string_view text, Breaks breaks = Breaks::escaped);

/// `value` with all its texts and keys printable; line breaks stay in texts.
nlohmann::json printable_json(const nlohmann::json& value);

/// `text` made printable, at most `longest` bytes, for a message that quotes it: the middle is left
/// out.
std::string quotable(std::string_view text, std::size_t longest = 200);

/// A message of at most `longest` bytes: later lines are left out first, with their number, then
/// the middle of what is longer still.
std::string bounded_message(const std::string& text, std::size_t longest = 2000);

/// Makes what is written to `stream` printable while it lives; line breaks and tabs stay.
class PrintableOutput {
 public:
  explicit PrintableOutput(std::ostream& stream);
  ~PrintableOutput();
  PrintableOutput(const PrintableOutput&) = delete;
  PrintableOutput& operator=(const PrintableOutput&) = delete;

 private:
  std::ostream& stream_;
  std::streambuf* before_;
};

/// A name as sentences write it: in quotes where it holds what separates the names of a list.
std::string name_in_sentence(const std::string& name);

/// `text` escaped for HTML, LaTeX or Markdown.
std::string escape_html(const std::string& text);
std::string escape_latex(const std::string& text);
std::string escape_markdown(const std::string& text);
/// A field of a CSV line, quoted where it must be.
std::string escape_csv(const std::string& text);

}  // namespace attnbench::text
