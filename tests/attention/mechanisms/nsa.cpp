// What is known of Native Sparse Attention, whatever computes it.
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

constexpr double kOpen = 1000, kClosed = -1000;

/// Two sequences of two heads, in blocks of 8 tokens, with a window of 6.
Fixture nsa(std::int64_t length, std::int64_t blocks, std::int64_t block = 8) {
  return {"nsa",
          test::two_by_two(length, 6),
          {{"block", count(block)}, {"blocks", count(blocks)}, {"window", Window{5, 0}}}};
}

/// Opens one of the three gates, and closes the others.
Fixture through(Fixture held, const std::string& gate) {
  for (auto& [role, tensor] : held.inputs.tensors) {
    if (role.rfind("gate_", 0) == 0) tensor.fill_(role == gate ? kOpen : kClosed);
  }
  return held;
}

Fixture with_inputs_of(const Fixture& held, const std::string& mechanism, const Overrides& said) {
  Fixture other(mechanism, held.problem, said);
  for (auto& [role, tensor] : other.inputs.tensors) tensor = held.inputs[role];
  other.upstream = held.upstream;
  return other;
}

void check_same(const Fixture& held, const Fixture& want) {
  const at::Tensor output = want.output("composite");
  auto gradients = want.gradients("composite");
  for (const auto& name : test::implementations_of("nsa")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), output) < 1e-14);
    for (const auto& [role, gradient] : held.gradients(name)) {
      if (gradients.count(role) == 1) CHECK(relative_error(gradient, gradients[role]) < 1e-12);
    }
  }
}

/// [T, N], true at blocks that the token has not completed.
at::Tensor incomplete(std::int64_t length, std::int64_t block) {
  const at::Tensor ends = at::arange(1, length / block + 1, at::kLong) * block;
  return ends.unsqueeze(0) > at::arange(1, length + 1, at::kLong).unsqueeze(1);
}

/// Means of the complete blocks.
at::Tensor means(const at::Tensor& x, std::int64_t block) {
  const std::int64_t blocks = x.size(2) / block;
  return x.narrow(2, 0, blocks * block).unflatten(2, at::IntArrayRef{blocks, block}).mean(3);
}

}  // namespace

TEST_CASE("nsa: its window alone is the window's attention", "[nsa]") {
  const Fixture held = through(nsa(37, 3), "gate_window");
  check_same(held, with_inputs_of(held, "window", {{"window", Window{5, 0}}}));
}

TEST_CASE("nsa: its chosen blocks alone are softmax attention where they are all", "[nsa]") {
  for (const std::int64_t block : {8, 13, 40}) {
    const Fixture held = through(nsa(37, 5, block), "gate_selected");
    check_same(held, with_inputs_of(held, "softmax", {}));
  }
}

TEST_CASE("nsa: of blocks of one token the first, the last two and the likeliest are chosen",
          "[nsa]") {
  constexpr std::int64_t length = 37, chosen = 6;
  const Fixture held = through(nsa(length, chosen, 1), "gate_selected");
  at::Tensor scores =
      at::matmul(held.inputs["query"], held.inputs["key"].transpose(-2, -1)) / std::sqrt(6.0);
  const at::Tensor later = at::ones({length, length}, at::kBool).triu(1);
  at::Tensor held_keys = at::eye(length, at::kBool);
  held_keys = held_keys.logical_or(at::ones({length, length}, at::kBool).tril(-1).triu(-1));
  held_keys.select(1, 0).fill_(true);
  const at::Tensor ranked = scores.masked_fill(held_keys, HUGE_VAL).masked_fill(later, -HUGE_VAL);
  const at::Tensor best = std::get<1>(ranked.topk(chosen, -1));
  const at::Tensor hidden =
      at::ones_like(scores, at::kBool).scatter_(-1, best, false).logical_or(later);
  const at::Tensor want =
      at::matmul(at::softmax(scores.masked_fill(hidden, -HUGE_VAL), -1), held.inputs["value"]);
  for (const auto& name : test::implementations_of("nsa")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-14);
  }
}

TEST_CASE("nsa: its means alone are attention over the means of complete blocks", "[nsa]") {
  const Fixture held = through(nsa(37, 3), "gate_compressed");
  const at::Tensor hidden = incomplete(37, 8);
  const at::Tensor scores =
      at::matmul(held.inputs["query"], means(held.inputs["key"], 8).transpose(-2, -1)) /
      std::sqrt(6.0);
  const at::Tensor want =
      at::matmul(at::softmax(scores.masked_fill(hidden, -HUGE_VAL), -1).nan_to_num(0),
                 means(held.inputs["value"], 8));
  for (const auto& name : test::implementations_of("nsa")) {
    CAPTURE(name);
    const at::Tensor output = held.output(name);
    CHECK(relative_error(output, want) < 1e-14);
    CHECK(output.narrow(2, 0, 7).abs().max().item<double>() == 0);  // no block is complete yet
    CHECK(output.select(2, 7).abs().min().item<double>() > 0);
  }
}

TEST_CASE("nsa: the output is the sum of three, each times the sigmoid of its gate", "[nsa]") {
  Fixture held = nsa(37, 3);
  const std::map<std::string, double> logits{
      {"gate_compressed", 0.3}, {"gate_selected", -1.2}, {"gate_window", 2.0}};
  for (const auto& name : test::implementations_of("nsa")) {
    CAPTURE(name);
    at::Tensor want = at::zeros_like(held.inputs["value"]);
    for (const auto& [gate, logit] : logits) {
      want = want + through(held, gate).output(name) / (1 + std::exp(-logit));
    }
    for (const auto& [gate, logit] : logits) held.inputs.tensors[gate].fill_(logit);
    CHECK(relative_error(held.output(name), want) < 1e-14);
  }
}

TEST_CASE("nsa: heads that share a key head choose together, others alone", "[nsa]") {
  // All heads but the second ask for block 1, which has the greater key, the second for block 2.
  constexpr std::int64_t length = 48;
  const Entry& entry = test::registry().entry("nsa");
  for (const std::int64_t kv_heads : {1, 3}) {
    Problem problem = test::two_by_two(length, 4);
    problem.batch = 1;
    problem.heads = 3;
    problem.kv_heads = kv_heads;
    problem.dtype = Dtype::float64;
    const Options options = entry.derive(
        Options::resolve(entry.options,
                         {{"block", count(8)}, {"blocks", count(4)}, {"window", Window{5, 0}}}),
        problem);
    const auto mechanism = entry.make(options, problem);
    Inputs inputs;
    for (const Role& role : mechanism->roles()) {
      inputs.tensors[role.name] = at::zeros(mechanism->shape_of(role), at::kDouble);
    }
    for (const char* gate : {"gate_compressed", "gate_window"}) {
      inputs.tensors[gate].fill_(kClosed);
    }
    inputs.tensors["key"].narrow(2, 8, 8).select(3, 0).fill_(1);
    inputs.tensors["key"].narrow(2, 16, 8).select(3, 1).fill_(1);
    inputs.tensors["query"].select(3, 0).fill_(1);
    inputs.tensors["query"].select(1, 1).select(2, 0).fill_(0);
    inputs.tensors["query"].select(1, 1).select(2, 1).fill_(1);
    inputs.tensors["value"].narrow(2, 8, 8).select(3, 0).fill_(1);
    inputs.tensors["value"].narrow(2, 16, 8).select(3, 1).fill_(1);
    for (const Implementation& form : entry.implementations) {
      CAPTURE(form.name, kv_heads);
      const at::Tensor last =
          form.mix(*mechanism, inputs, nullptr).output.select(2, length - 1)[0];  // [H, Dv]
      for (std::int64_t head = 0; head < 3; ++head) {
        const bool second = head == 1 && kv_heads == 3;
        CHECK((last[head][0].item<double>() > 0.01) == !second);
        CHECK((last[head][1].item<double>() > 0.01) == second);
      }
    }
  }
}

TEST_CASE("nsa: of blocks that weigh alike the earlier are chosen, in every form and dtype",
          "[nsa]") {
  constexpr std::int64_t length = 61;
  Fixture held = through(nsa(length, 5), "gate_selected");
  held.inputs.tensors["key"].copy_(held.inputs["key"].narrow(2, 0, 1));
  held.inputs.key_mask = at::ones({2, length}, at::kBool);
  held.inputs.key_mask.narrow(1, 11, 5).fill_(false);
  const at::Tensor number = at::arange(length, at::kLong).floor_divide(8);
  const at::Tensor apart = number.unsqueeze(1) - number.unsqueeze(0);
  // Its own, the one before, and of the others the first three.
  const at::Tensor seen = apart.ge(0).logical_and(apart.le(1).logical_or(number.lt(3)));
  const at::Tensor hidden = seen.logical_not()
                                .logical_or(at::ones({length, length}, at::kBool).triu(1))
                                .logical_or(held.inputs.key_mask[0].logical_not());
  const at::Tensor weights = hidden.logical_not().to(at::kDouble);
  const at::Tensor want = at::matmul(weights / weights.sum(-1, true), held.inputs["value"]);
  for (const auto& name : test::implementations_of("nsa")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-13);
    CHECK(relative_error(held.output(name, at::kFloat), want) < 1e-6);
    CHECK(relative_error(held.output(name, at::kBFloat16), want) < 0.01);
  }
}

TEST_CASE("nsa: a state holds keys, values and sums of both, and refuses more tokens", "[nsa]") {
  const Fixture held = nsa(20, 3);
  State state = held.empty_state(at::kFloat);
  CHECK(state.bytes() == 2 * 2 * 20 * (6 + 8) * 4 + 2 * 3 * (2 * (6 + 8) + 1) * 8);
  Problem problem = held.problem;
  problem.dtype = Dtype::float32;
  for (const auto& name : test::implementations_of("nsa")) {
    const Implementation& form = held.entry.implementation(name);
    CHECK(form.cost(held.options, problem).state_bytes == static_cast<double>(state.bytes()));
  }
  held.step("gathered", state, 0, 20, at::kFloat);
  CHECK_THROWS_WITH(held.step("gathered", state, 0, 1, at::kFloat),
                    "nsa: the state has room for 20 tokens, not for 21");
}

TEST_CASE("nsa: costs count the pairs that are seen, the means and the gates", "[nsa]") {
  for (const std::int64_t blocks : {3, 4, 9}) {
    const Fixture held = nsa(37, blocks);
    double pairs = 0, means = 0;
    for (std::int64_t t = 0; t < 37; ++t) {
      pairs += static_cast<double>(t % 8 + 1 + 8 * std::min(t / 8, blocks - 1));
      pairs += static_cast<double>(std::min<std::int64_t>(t + 1, 6));
      means += static_cast<double>((t + 1) / 8);
    }
    for (const auto& name : test::implementations_of("nsa")) {
      CAPTURE(name, blocks);
      const Cost cost = held.entry.implementation(name).cost(held.options, held.problem);
      const double sums = 4 * 37 * (6 + 8), gates = 5 * 4 * 37 * 8;
      CHECK(cost.model_flops ==
            Approx(4 * 2 * (6 + 8) * (pairs + means) + 4 * means + sums + gates));
      CHECK(cost.executed_flops >= cost.model_flops);
      CHECK(cost.exponentials >= 4 * (pairs + means + 3 * 37));
      CHECK(cost.minimal_bytes == 4 * 37 * (2 * (6 + 8) + 3) * 4);
    }
  }
}

TEST_CASE("nsa: refuses what it is not defined for", "[nsa]") {
  const Entry& entry = test::registry().entry("nsa");
  for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
    const Support answer =
        entry.supports(Options::resolve(entry.options, {}), test::two_by_two(8, 4, pattern));
    CHECK_THAT(answer.reason, Catch::Contains("chooses among the blocks before its own"));
  }
  CHECK_THROWS_WITH(Options::resolve(entry.options, {{"blocks", count(2)}}),
                    Catch::Contains("blocks"));
  CHECK_THROWS_WITH(
      entry.derive(Options::resolve(entry.options, {{"window", Window{3, 1}}}), Problem{}),
      Catch::Contains("a causal window must have right 0"));
}

}  // namespace attnbench
