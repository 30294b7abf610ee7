#include "core/text/shell.hpp"

#include "tests/support/catch.hpp"

using namespace attnbench::text;
using Words = std::vector<std::string>;

TEST_CASE("words for a shell are quoted where they must be, and read back as they were", "[text]") {
  CHECK(shell_words({"attnbench", "run", "--only", "a b"}) == "attnbench run --only 'a b'");
  CHECK(shell_word("it's") == "'it'\\''s'");
  CHECK(shell_word("") == "''");
  for (const Words& words : {Words{"attnbench", "run", "x.json"}, Words{"", "a  b", "it's"},
                             Words{"$(rm)", "a;b", "\\"}, Words{"'", "''", "\n"}, Words{}}) {
    INFO(shell_words(words));
    CHECK(words_of_command(shell_words(words)) == words);
  }
  CHECK_FALSE(words_of_command("attnbench run 'x"));
}
