#include "core/text/spelling.hpp"

#include "tests/support/catch.hpp"

using attnbench::text::nearest_word;

TEST_CASE("The nearest word forgives slips, not other words", "[suite]") {
  const std::vector<std::string> known = {"length", "latents_total", "pattern", "pass"};
  CHECK(nearest_word("lenght", known) == "length");
  CHECK(nearest_word("LENGTH", known) == "length");
  CHECK(nearest_word("pattren", known) == "pattern");
  CHECK(nearest_word("latents", known) == "latents_total");
  CHECK(nearest_word("colour", known).empty());
  CHECK(nearest_word("", known).empty());
  CHECK(nearest_word(std::string(100000, 'x'), known).empty());
}

TEST_CASE("A suggestion lists what there is where nothing is near", "[suite]") {
  CHECK(attnbench::text::suggestion("pas", {"pass"}) == "did you mean \"pass\"?");
  CHECK(attnbench::text::suggestion("colour", {"a", "b"}) == "there are: a, b");
  CHECK(attnbench::text::listed({}) == "none");
}
