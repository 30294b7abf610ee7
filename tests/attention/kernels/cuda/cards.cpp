// Planning for a card that is not the current one.
#include "attention/kernels/cuda/cards.hpp"

#include "tests/support/catch.hpp"

namespace attnbench::kernels::cuda::test {

TEST_CASE("cards: what is regarded is so in its scope alone, the innermost first") {
  CHECK(Regarding::number() == Regarding::none);
  {
    const Regarding third(3);
    CHECK(Regarding::number() == 3);
    {
      const Regarding fifth(5);
      CHECK(Regarding::number() == 5);
    }
    CHECK(Regarding::number() == 3);
  }
  CHECK(Regarding::number() == Regarding::none);
}

TEST_CASE("cards: a card that is not there is no card to plan for") {
  const Regarding none(99);
  CHECK_THROWS_AS(card(), Error);
}

#ifdef ATTNBENCH_EMULATED

TEST_CASE("cards: the card is the one that is regarded") {
  const Regarding other(1);
  CHECK(card().name == "a larger emulated card");
}

#endif

}  // namespace attnbench::kernels::cuda::test
