// What is known of Mixture of Block Attention, whatever computes it.
#include <cmath>

#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;

/// Two sequences of two heads, in blocks of 8 tokens.
Fixture moba(std::int64_t length, std::int64_t blocks, std::int64_t block = 8) {
  return {
      "moba", test::two_by_two(length, 6), {{"block", count(block)}, {"blocks", count(blocks)}}};
}

/// Softmax attention of the same inputs.
Fixture softmax_of(const Fixture& held) {
  Fixture softmax("softmax", held.problem);
  for (auto& [role, tensor] : softmax.inputs.tensors) tensor = held.inputs[role];
  softmax.upstream = held.upstream;
  softmax.inputs.key_mask = held.inputs.key_mask;
  return softmax;
}

/// softmax(q k^T / sqrt(D)) v over the keys that are not `hidden`, [B, H, T, S] or what expands.
at::Tensor attention(const Fixture& held, const at::Tensor& hidden) {
  const at::Tensor scores =
      at::matmul(held.inputs["query"], held.inputs["key"].transpose(-2, -1)) / std::sqrt(6.0);
  return at::matmul(at::softmax(scores.masked_fill(hidden, -HUGE_VAL), -1), held.inputs["value"]);
}

/// [T, S], true at later keys, and at keys of other blocks.
at::Tensor later(std::int64_t length) { return at::ones({length, length}, at::kBool).triu(1); }
at::Tensor elsewhere(std::int64_t length, std::int64_t block) {
  const at::Tensor number = at::arange(length, at::kLong).floor_divide(block);
  return number.unsqueeze(0).ne(number.unsqueeze(1));
}

}  // namespace

TEST_CASE("moba: with as many blocks as there are it is softmax attention", "[moba]") {
  for (const std::int64_t block : {1, 5, 8, 37, 100}) {
    const Fixture held = moba(37, (37 + block - 1) / block, block);
    const Fixture softmax = softmax_of(held);
    const at::Tensor want = softmax.output("composite");
    auto gradients = softmax.gradients("composite");
    for (const auto& name : test::implementations_of("moba")) {
      CAPTURE(name, block);
      CHECK(relative_error(held.output(name), want) < 1e-14);
      for (const auto& [role, gradient] : held.gradients(name)) {
        CHECK(relative_error(gradient, gradients[role]) < 1e-13);
      }
      if (block > 1) continue;
      const Fixture fewer = moba(37, 36, block);
      CHECK(relative_error(fewer.output(name), want) > 1e-6);  // the last query misses a key
    }
  }
}

TEST_CASE("moba: a single block is attention within the query's own", "[moba]") {
  const Fixture held = moba(37, 1);
  const at::Tensor want = attention(held, later(37).logical_or(elsewhere(37, 8)));
  for (const auto& name : test::implementations_of("moba")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-14);
  }
  const Fixture itself = moba(37, 1, 1);
  for (const auto& name : test::implementations_of("moba")) {
    CHECK(relative_error(itself.output(name), itself.inputs["value"]) < 1e-14);
  }
}

TEST_CASE("moba: blocks of one token are the keys with the greatest products", "[moba]") {
  constexpr std::int64_t length = 37, past = 4;
  const Fixture held = moba(length, past + 1, 1);
  const at::Tensor past_keys = later(length).logical_or(at::eye(length, at::kBool));
  const at::Tensor scores = at::matmul(held.inputs["query"], held.inputs["key"].transpose(-2, -1))
                                .masked_fill(past_keys, -HUGE_VAL);
  const at::Tensor best = std::get<1>(scores.topk(past, -1));
  const at::Tensor hidden = at::ones_like(scores, at::kBool).scatter_(-1, best, false);
  const at::Tensor want = attention(
      held, hidden.logical_or(later(length)).logical_and(at::eye(length, at::kBool).logical_not()));
  for (const auto& name : test::implementations_of("moba")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-14);
  }
}

TEST_CASE("moba: of blocks that score alike the earlier are chosen, in every form and dtype",
          "[moba]") {
  constexpr std::int64_t length = 50;
  Fixture held = moba(length, 3);
  // All keys alike, so that rounding alone could tell the blocks' means apart: block 1 has three
  // real tokens, a mean of which is not rounded as one of eight is.
  held.inputs.tensors["key"].copy_(held.inputs["key"].narrow(2, 0, 1));
  held.inputs.key_mask = at::ones({2, length}, at::kBool);
  held.inputs.key_mask.narrow(1, 11, 5).fill_(false);
  at::Tensor hidden = elsewhere(length, 8);
  hidden.narrow(1, 0, 16).fill_(false);  // blocks 0 and 1
  hidden = hidden.logical_or(later(length)).logical_or(held.inputs.key_mask[0].logical_not());
  for (const bool zero : {false, true}) {
    if (zero) held.inputs.tensors["query"].mul_(-0.0);  // 0 and -0
    const at::Tensor want = attention(held, hidden);
    for (const auto& name : test::implementations_of("moba")) {
      CAPTURE(name, zero);
      CHECK(relative_error(held.output(name), want) < 1e-14);
      CHECK(relative_error(held.output(name, at::kFloat), want) < 1e-6);
      CHECK(relative_error(held.output(name, at::kBFloat16), want) < 0.01);
    }
  }
}

TEST_CASE("moba: the choice follows the mean key, whatever the scale, and is each head's own",
          "[moba]") {
  constexpr std::int64_t length = 40;
  for (const double scale : {0.0, -2.0, 1e-9}) {
    Fixture held("moba", test::two_by_two(length, 6),
                 {{"block", count(8)}, {"blocks", count(2)}, {"scale", scale}});
    at::Tensor& key = held.inputs.tensors["key"];
    at::Tensor& query = held.inputs.tensors["query"];
    // The first head asks for block 2, the second for block 1, where both have passed.
    key.zero_();
    query.zero_();
    key.narrow(2, 16, 8).select(3, 0).fill_(1);
    key.narrow(2, 8, 8).select(3, 1).fill_(1);
    query.select(1, 0).select(2, 0).fill_(1);
    query.select(1, 1).select(2, 1).fill_(1);
    at::Tensor& value = held.inputs.tensors["value"];
    value.zero_();
    value.narrow(2, 16, 8).select(3, 0).fill_(1);
    value.narrow(2, 8, 8).select(3, 1).fill_(1);
    for (const auto& name : test::implementations_of("moba")) {
      CAPTURE(name, scale);
      const at::Tensor last = held.output(name).select(2, length - 1);  // [B, H, Dv]
      const at::Tensor first_head = last.select(1, 0), second_head = last.select(1, 1);
      CHECK(first_head.select(1, 0).min().item<double>() > 0.01);
      CHECK(first_head.select(1, 1).abs().max().item<double>() == 0);
      CHECK(second_head.select(1, 1).min().item<double>() > 0.01);
      CHECK(second_head.select(1, 0).abs().max().item<double>() == 0);
    }
  }
}

TEST_CASE("moba: a block that all queries choose, and one that none does", "[moba]") {
  constexpr std::int64_t length = 101;
  Fixture held = moba(length, 2);
  at::Tensor& key = held.inputs.tensors["key"];
  at::Tensor& query = held.inputs.tensors["query"];
  query.select(3, 0).abs_().add_(1);
  key.narrow(2, 8, 8).select(3, 0).add_(1000);    // block 1
  key.narrow(2, 32, 8).select(3, 0).add_(-1000);  // block 4
  at::Tensor hidden = elsewhere(length, 8);
  hidden.narrow(0, 16, length - 16).narrow(1, 8, 8).fill_(false);
  hidden.narrow(0, 8, 8).narrow(1, 0, 8).fill_(false);  // all there is before block 1
  const at::Tensor want = attention(held, hidden.logical_or(later(length)));
  auto gradients = held.gradients("composite");
  for (const auto& name : test::implementations_of("moba")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-12);
    for (const auto& [role, gradient] : held.gradients(name)) {
      CHECK(relative_error(gradient, gradients[role]) < 1e-10);
    }
  }
}

TEST_CASE("moba: a block without real tokens takes no other's place", "[moba]") {
  constexpr std::int64_t length = 30;
  Fixture held = moba(length, 2);
  // Blocks 1 and 2 score less than nothing would.
  held.inputs.tensors["query"].fill_(1);
  held.inputs.tensors["key"].fill_(-1);
  held.inputs.key_mask = at::ones({2, length}, at::kBool);
  held.inputs.key_mask.narrow(1, 0, 8).fill_(false);
  const Fixture softmax = softmax_of(held);
  // The queries of block 2 see blocks 1 and 2, all there is.
  const at::Tensor want = softmax.output("composite").narrow(2, 16, 8);
  for (const auto& name : test::implementations_of("moba")) {
    CAPTURE(name);
    const at::Tensor output = held.output(name);
    CHECK(relative_error(output.narrow(2, 16, 8), want) < 1e-14);
    CHECK(output.narrow(2, 0, 8).abs().max().item<double>() == 0);
  }
}

TEST_CASE("moba: a state holds keys, values and a sum for each block, and refuses more tokens",
          "[moba]") {
  const Fixture held = moba(20, 2);
  State state = held.empty_state(at::kFloat);
  CHECK(state.bytes() == 2 * 2 * 20 * (6 + 8) * 4 + 2 * 3 * (2 * 6 + 1) * 8);
  Problem problem = held.problem;
  problem.dtype = Dtype::float32;
  for (const auto& name : test::implementations_of("moba")) {
    const Implementation& form = held.entry.implementation(name);
    CHECK(form.cost(held.options, problem).state_bytes == static_cast<double>(state.bytes()));
  }
  held.step("gathered", state, 0, 20, at::kFloat);
  CHECK_THROWS_WITH(held.step("gathered", state, 0, 1, at::kFloat),
                    "moba: the state has room for 20 tokens, not for 21");
}

TEST_CASE("moba: costs count the pairs that are seen, and what choosing takes", "[moba]") {
  for (const std::int64_t blocks : {1, 2, 4, 9}) {
    const Fixture held = moba(37, blocks);
    double pairs = 0, scored = 0;
    for (std::int64_t t = 0; t < 37; ++t) {
      pairs += static_cast<double>(t % 8 + 1 + 8 * std::min(t / 8, blocks - 1));
      scored += static_cast<double>(t / 8);
    }
    const double choice = blocks == 1 ? 0 : 4 * (2 * 6 * scored + 6 * 37);
    for (const auto& name : test::implementations_of("moba")) {
      CAPTURE(name, blocks);
      const Cost cost = held.entry.implementation(name).cost(held.options, held.problem);
      CHECK(cost.model_flops == Approx(4 * 2 * (6 + 8) * pairs + choice));
      CHECK(cost.executed_flops >= cost.model_flops);
      CHECK(cost.exponentials >= 4 * pairs);
      CHECK(cost.minimal_bytes == 4 * 37 * 2 * (6 + 8) * 4);
    }
  }
}

TEST_CASE("moba: refuses what it is not defined for", "[moba]") {
  const Entry& entry = test::registry().entry("moba");
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    const Support answer =
        entry.supports(Options::resolve(entry.options, {}), test::two_by_two(8, 4, pattern));
    CHECK_THAT(answer.reason, Catch::Contains("chooses among the blocks before its own"));
  }
  for (const char* option : {"block", "blocks"}) {
    CHECK_THROWS_WITH(Options::resolve(entry.options, {{option, count(0)}}),
                      Catch::Contains(option));
  }
}

}  // namespace attnbench
