#include "core/text/printable.hpp"

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/catch.hpp"

using namespace attnbench;
using text::Breaks;

TEST_CASE("control characters are shown, not sent", "[printable]") {
  CHECK(text::printable("plain µs ±1 %") == "plain µs ±1 %");
  CHECK(text::printable("\x1b[31mred\a") == "\\u001b[31mred\\u0007");
  CHECK(text::printable("a\nb\tc") == "a\\u000ab\\u0009c");
  CHECK(text::printable("a\nb\tc\r", Breaks::kept) == "a\nb\tc\\u000d");
  CHECK(text::printable("\x7f") == "\\u007f");
  // The one-byte forms of terminals' commands, as UTF-8; marks that turn the direction of writing.
  CHECK(text::printable("\xC2\x9B"
                        "31m") == "\\u009b31m");
  CHECK(text::printable("\xE2\x80\xAE") == "\\u202e");
  // No letter, and what ends the drawing of a picture.
  CHECK(text::printable("\xEF\xBF\xBE") == "\\ufffe");
  CHECK(text::printable("\xff"
                        "a\xC3") ==
        "\xEF\xBF\xBD"
        "a\xEF\xBF\xBD");
}

TEST_CASE("printable JSON parses to the same JSON", "[printable]") {
  const nlohmann::json value = {{"a\x1b", {"x\x7fy", 1, true}}, {"text", "line\nline"}};
  const nlohmann::json shown = text::printable_json(value);
  CHECK(shown["a\\u001b"][0] == "x\\u007fy");
  CHECK(shown["text"] == "line\nline");
  CHECK(nlohmann::json::parse(text::printable(nlohmann::json("x\x7fy").dump())) == "x\x7fy");
}

TEST_CASE("quotes are short and keep both ends", "[printable]") {
  CHECK(text::quotable("word") == "word");
  const std::string cut = text::quotable("begin" + std::string(1 << 20, 'x') + "end");
  CHECK(cut.size() <= 200);
  CHECK_THAT(cut, Catch::StartsWith("begin") && Catch::Contains(" … ") && Catch::EndsWith("end"));
  // No letter is cut in two.
  std::string letters;
  for (int i = 0; i < 1000; ++i) letters += "µ";
  for (std::size_t longest = 20; longest < 40; ++longest) {
    CHECK(text::is_utf8_text(text::quotable(letters, longest)));
  }
}

TEST_CASE("a message is at most two kilobytes, whatever it quotes", "[printable]") {
  const std::string lines = std::string("first line\n") + std::string(1 << 20, 'x') + "\nlast";
  CHECK(text::bounded_message(lines).size() <= 2000);
  CHECK_THAT(text::bounded_message(lines), Catch::StartsWith("first line\n"));
  std::string many;
  for (int i = 0; i < 1000; ++i) many += "a line of some words\n";
  const std::string shown = text::bounded_message(many);
  CHECK(shown.size() <= 2000);
  CHECK_THAT(shown, Catch::Contains("more lines"));
  CHECK(text::bounded_message("short\nlines") == "short\nlines");
}

TEST_CASE("a stream passes on printable text, letters that arrive in two parts included",
          "[printable]") {
  std::ostringstream stream;
  {
    const text::PrintableOutput output(stream);
    stream << "a\x1b[2J\n"
           << "\xC2" << std::flush << "\xB5s" << 'c' << "\xC3";
  }
  CHECK(stream.str() == "a\\u001b[2J\nµsc\xEF\xBF\xBD");
  stream << "\x1b";
  CHECK(stream.str().back() == '\x1b');
}
