#include "core/sequence_lengths.hpp"

#include "core/errors.hpp"
#include "tests/support/catch.hpp"

using attnbench::sequence_lengths;
using attnbench::sequence_lengths_text;
using Lengths = std::vector<std::int64_t>;

TEST_CASE("Lengths are joined by +, with or without counts", "[suite]") {
  CHECK(sequence_lengths("").empty());
  CHECK(sequence_lengths("100") == Lengths{100});
  CHECK(sequence_lengths("100+2000+512") == Lengths{100, 2000, 512});
  CHECK(sequence_lengths(" 3 x 5 + 7 ") == Lengths{5, 5, 5, 7});
  CHECK(sequence_lengths("67108864") == Lengths{67108864});
}

TEST_CASE("Equal batches have one text", "[suite]") {
  CHECK(sequence_lengths_text({}).empty());
  CHECK(sequence_lengths_text({100, 2000, 512}) == "100+2000+512");
  CHECK(sequence_lengths_text({5, 5, 7, 5}) == "2x5+7+5");
  for (const char* text : {"9", "2x5+7+5", "3x1+1x4"}) {
    const Lengths lengths = sequence_lengths(text);
    CHECK(sequence_lengths(sequence_lengths_text(lengths)) == lengths);
  }
}

TEST_CASE("Lengths that are none say why, and what was expected", "[suite]") {
  const std::pair<const char*, const char*> faults[] = {
      {"100+0", "0 is no length"},
      {"100+-5", "-5 is no length"},
      {"100+", "\"\" is no length"},
      {"+100", "\"\" is no length"},
      {"100,200", "\"100,200\" is no length"},
      {"1e3", "\"1e3\" is no length"},
      {"67108865", "67108865 is no length"},
      {"99999999999999999999", "\"99999999999999999999\" is no length"},
      {"0x16", "0 is no count of sequences"},
      {"x16", "\"\" is no count of sequences"},
      {"2x", "\"\" is no length"},
      {"2x3x4", "\"3x4\" is no length"},
      {"1048577x1", "1048577 is no count of sequences"},
      {"1048576x1+1", "it has more than 1048576 sequences"},
  };
  for (const auto& [text, why] : faults) {
    INFO(text);
    try {
      sequence_lengths(text);
      FAIL("it was taken");
    } catch (const attnbench::UsageError& error) {
      CHECK_THAT(error.what(), Catch::Contains(std::string("lengths \"") + text + "\": " + why));
      CHECK_THAT(error.what(), Catch::Contains("expected the tokens of each sequence"));
    }
  }
}
