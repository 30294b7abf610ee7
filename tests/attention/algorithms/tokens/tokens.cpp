// Heads that share keys; rotary positions: their tables, which calls share, and what they do to
// pairs of channels.
#include "attention/algorithms/tokens/tokens.hpp"

#include <cmath>
#include <thread>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using test::relative_error;

constexpr double kTableBase = 50;

/// x [B, H, T, w] with its pairs rotated, number by number.
Tensor turned_in_loops(const Tensor& x, std::int64_t first, double base) {
  Tensor y = x.clone();
  const std::int64_t pairs = x.size(3) / 2;
  for (std::int64_t t = 0; t < x.size(2); ++t) {
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(first + t) *
                           std::pow(base, -static_cast<double>(i) / static_cast<double>(pairs));
      const Tensor a = x.select(2, t).select(2, 2 * i);
      const Tensor b = x.select(2, t).select(2, 2 * i + 1);
      y.select(2, t).select(2, 2 * i).copy_(a * std::cos(angle) - b * std::sin(angle));
      y.select(2, t).select(2, 2 * i + 1).copy_(a * std::sin(angle) + b * std::cos(angle));
    }
  }
  return y;
}

}  // namespace

TEST_CASE("query heads fold into the rows of their key head and back, keys repeat for them") {
  const Tensor queries = at::randn({2, 6, 5, 3}, at::kDouble);
  const Tensor keys = at::randn({2, 2, 7, 3}, at::kDouble);
  const Tensor folded = folded_heads(queries, 2);
  CHECK(folded.sizes() == at::IntArrayRef({2, 2, 15, 3}));
  CHECK(at::equal(folded.select(1, 1).narrow(1, 5, 5), queries.select(1, 4)));
  CHECK(at::equal(unfolded_heads(folded, 6), queries));
  const Tensor repeated = repeated_heads(keys, 6);
  for (std::int64_t h = 0; h < 6; ++h) {
    CHECK(at::equal(repeated.select(1, h), keys.select(1, h / 3)));
  }
  CHECK(relative_error(unfolded_heads(at::matmul(folded, keys.transpose(2, 3)), 6),
                       at::matmul(queries, repeated.transpose(2, 3))) < 1e-14);
  CHECK(folded_heads(queries, 6).is_alias_of(queries));
  CHECK(repeated_heads(keys, 2).is_alias_of(keys));
  CHECK(repeated_heads(keys.narrow(1, 0, 1), 6).is_alias_of(keys));
}

TEST_CASE("rotated: pairs turn by their positions, a last odd channel stays, and back undoes it") {
  for (const std::int64_t width : {1, 2, 5, 8}) {
    for (const std::int64_t first : {0, 7}) {
      CAPTURE(width, first);
      const Tensor x = at::randn({2, 3, 19, width}, at::kDouble);
      const Tensor y = rotated(x, first, kTableBase, Rotation::forward);
      CHECK(relative_error(y, turned_in_loops(x, first, kTableBase)) < 1e-13);
      CHECK(relative_error(rotated(y, first, kTableBase, Rotation::inverse), x) < 1e-13);
      CHECK(at::equal(rotated(x, rotary_table(x, first, kTableBase), Rotation::forward), y));
    }
  }
}

TEST_CASE("rotated: a kept table is that of its positions, width, base and dtype alone") {
  // Neighbours in every part of what a table depends on, in turns, each against a fresh product.
  struct Place {
    std::int64_t first, tokens, width;
    double base;
    at::ScalarType type;
  };
  const std::vector<Place> places{{0, 12, 6, 10000, at::kFloat},   {1, 12, 6, 10000, at::kFloat},
                                  {0, 13, 6, 10000, at::kFloat},   {0, 12, 8, 10000, at::kFloat},
                                  {0, 12, 6, 100, at::kFloat},     {0, 12, 6, 10000, at::kDouble},
                                  {0, 12, 6, 10000, at::kBFloat16}};
  for (int round = 0; round < 3; ++round) {
    for (const Place& place : places) {
      CAPTURE(round, place.first, place.tokens, place.width, place.base);
      const Tensor x = at::randn({1, 2, place.tokens, place.width}, at::kDouble).to(place.type);
      const Tensor y = rotated(x, place.first, place.base, Rotation::forward);
      CHECK(y.scalar_type() == place.type);
      const Tensor expected = turned_in_loops(x.to(at::kDouble), place.first, place.base);
      const double bar = place.type == at::kDouble ? 1e-13 : place.type == at::kFloat ? 1e-6 : 4e-3;
      CHECK(relative_error(y.to(at::kDouble), expected) < bar);
      const RotaryTable table = rotary_table(x, place.first, place.base);
      CHECK(table.cosine.scalar_type() == compute_type(place.type));
      CHECK(table.cosine.sizes() == at::IntArrayRef({place.tokens, place.width / 2}));
    }
  }
}

TEST_CASE("rotated: a table made without gradients serves a call that records them, and threads") {
  const Tensor x = at::randn({1, 2, 31, 6}, at::kDouble);
  Tensor first;
  {
    const c10::InferenceMode inference;
    first = rotated(x, 3, kTableBase, Rotation::forward).clone();
  }
  const Tensor leaf = x.clone().requires_grad_(true);
  const Tensor y = rotated(leaf, 3, kTableBase, Rotation::forward);
  CHECK(at::equal(first, y.detach()));
  y.sum().backward();
  CHECK(relative_error(leaf.grad(), rotated(at::ones_like(x), 3, kTableBase, Rotation::inverse)) <
        1e-13);

  std::vector<int> wrong(4, 0);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      // More positions than are kept, so that tables come and go while others read them.
      for (std::int64_t place = 0; place < 60; ++place) {
        const std::int64_t at = (place + static_cast<std::int64_t>(i)) % 20;
        const Tensor here = rotated(x, at, kTableBase, Rotation::forward);
        const Tensor back = rotated(here, at, kTableBase, Rotation::inverse);
        wrong[i] += relative_error(back, x) < 1e-13 ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(4, 0));
}

}  // namespace attnbench
