#include "core/text/colour.hpp"

#include <cstdlib>

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("statuses and verdicts are coloured as whole words", "[colour]") {
  CHECK(text::with_coloured_words("latte at 256: wrong: rows differ\n") ==
        "latte at 256: " + text::coloured("wrong", text::Colour::red) + ": rows differ\n");
  CHECK(text::with_coloured_words("2 ok, 1 out_of_memory") ==
        "2 " + text::coloured("ok", text::Colour::green) + ", 1 " +
            text::coloured("out_of_memory", text::Colour::yellow));
  for (const char* plain : {"", "tokens, okay, wrongly", "SLOWER not_ok", "1.07 ms ±2 %"}) {
    CHECK(text::with_coloured_words(plain) == plain);
  }
  CHECK(text::with_coloured_words("SLOW") == text::coloured("SLOW", text::Colour::red));
}

TEST_CASE("a stream that is no terminal shows no colour", "[colour]") {
  std::FILE* file = std::tmpfile();
  REQUIRE(file != nullptr);
  CHECK_FALSE(text::shows_colour(file));
  std::fclose(file);
}
