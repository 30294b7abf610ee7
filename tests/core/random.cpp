#include "core/random.hpp"

#include <cstdlib>
#include <set>

#include "tests/support/catch.hpp"

using namespace attnbench;

TEST_CASE("Philox gives the numbers of its authors' known answers", "[random]") {
  // Random123's kat_vectors, philox4x32 with 10 rounds.
  using Block = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Block{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  CHECK(philox({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}) ==
        Block{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Block{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("a subject's numbers begin with the block of its counter", "[random]") {
  Random draws(7, 0x1'0000'0002ull);
  const std::array<std::uint32_t, 4> first = philox({0, 0, 2, 1}, {7, 0});
  const std::array<std::uint32_t, 4> second = philox({1, 0, 2, 1}, {7, 0});
  for (const std::uint32_t number : first) CHECK(draws.next() == number);
  for (const std::uint32_t number : second) CHECK(draws.next() == number);
}

TEST_CASE("numbers below a bound are all there, alike, and never reach it", "[random]") {
  Random draws(1, 2);
  std::array<int, 7> seen{};
  for (int i = 0; i < 70'000; ++i) ++seen.at(draws.below(7));
  for (const int count : seen) CHECK(std::abs(count - 10'000) < 400);  // 4.3 standard errors
}

TEST_CASE("every part of a key matters", "[random]") {
  const std::set<std::uint64_t> keys{key_of({1, 2, 3}), key_of({1, 3, 2}), key_of({1, 2}),
                                     key_of({2, 2, 3}), key_of({1, 2, 4}), key_of({})};
  CHECK(keys.size() == 6);
}
