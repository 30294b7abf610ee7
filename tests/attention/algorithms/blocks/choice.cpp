// Sums over blocks, and the order in which blocks are chosen.
#include "attention/algorithms/blocks/blocks.hpp"

#include <limits>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::vector<std::int64_t> places_of(const std::vector<double>& scores,
                                    const std::vector<std::int64_t>& hidden, std::int64_t count) {
  const auto size = static_cast<std::int64_t>(scores.size());
  at::Tensor mask = at::zeros({size}, at::kBool);
  for (const std::int64_t place : hidden) mask[place].fill_(true);
  const at::Tensor places =
      greatest_places(at::tensor(scores, at::kDouble), mask, count).contiguous();
  return {places.data_ptr<std::int64_t>(), places.data_ptr<std::int64_t>() + places.numel()};
}

using Places = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("the greatest scores go first, whatever their sign and size", "[blocks]") {
  const std::vector<double> scores{-1e30, 3, -kInfinity, -2, kInfinity, 1e-44, -1e-44, 3.5};
  CHECK(places_of(scores, {}, 8) == Places{4, 7, 1, 5, 6, 3, 0, 2});
  CHECK(places_of(scores, {}, 3) == Places{4, 7, 1});
  CHECK(places_of(scores, {4, 1}, 3) == Places{7, 5, 6});
  CHECK(places_of(scores, {0, 1, 2, 3, 5, 6, 7}, 3) == Places{4, -1, -1});
  CHECK(places_of(scores, {}, 20).size() == 8);
  CHECK(places_of({7}, {0}, 1) == Places{-1});
}

TEST_CASE("of scores that are equal in float32 the first goes first", "[blocks]") {
  CHECK(places_of({1, 2, 2, 1, 2}, {}, 4) == Places{1, 2, 4, 0});
  CHECK(places_of({0.0, -0.0, 0.0}, {}, 3) == Places{0, 1, 2});
  CHECK(places_of({-0.0, 0.0, -0.0}, {}, 3) == Places{0, 1, 2});
  CHECK(places_of({-5, -5 + 1e-12, -5 - 1e-12}, {}, 3) == Places{0, 1, 2});
  CHECK(places_of({3, 3 + 1e-12, 3 + 1e-6}, {}, 3) == Places{2, 0, 1});
}

TEST_CASE("sums of blocks leave out padding, and pieces add up to the whole", "[blocks]") {
  constexpr std::int64_t length = 29, size = 8;
  const at::Tensor x = at::randn({2, 3, length, 5}, at::kFloat);
  at::Tensor mask = at::ones({2, length}, at::kBool);
  mask[0].narrow(0, 8, 8).fill_(false);
  mask[1].narrow(0, 3, 9).fill_(false);
  at::Tensor spoiled = x.clone();
  spoiled.masked_fill_(mask.logical_not().view({2, 1, length, 1}),
                       std::numeric_limits<double>::quiet_NaN());
  const BlockSums whole = block_sums(spoiled, mask, size);
  CHECK(whole.sum.sizes() == at::IntArrayRef({2, 3, 4, 5}));
  CHECK(whole.sum.scalar_type() == at::kDouble);
  const at::Tensor real = mask.to(at::kDouble);
  for (std::int64_t block = 0; block < blocks_of(length, size); ++block) {
    const std::int64_t tokens = std::min(size, length - block * size);
    const at::Tensor weights = real.narrow(1, block * size, tokens);
    const at::Tensor want =
        (x.narrow(2, block * size, tokens).to(at::kDouble) * weights.view({2, 1, tokens, 1}))
            .sum(2);
    CHECK(test::relative_error(whole.sum.select(2, block), want) < 1e-14);
    CHECK(at::equal(whole.tokens.select(1, block), weights.sum(1)));
  }
  CHECK(whole.mean().select(0, 0).select(1, 1).abs().max().item<double>() == 0);  // none is real
  const BlockSums all{at::zeros({2, 3, 4, 5}, at::kDouble), at::zeros({2, 4}, at::kDouble)};
  for (std::int64_t begin = 0; begin < length; begin += 5) {
    const std::int64_t count = std::min<std::int64_t>(5, length - begin);
    add_block_sums(all,
                   block_sums(spoiled.narrow(2, begin, count), mask.narrow(1, begin, count), size,
                              begin % size),
                   begin / size);
  }
  CHECK(test::relative_error(all.sum, whole.sum) < 1e-14);
  CHECK(at::equal(all.tokens, whole.tokens));
}

}  // namespace attnbench
