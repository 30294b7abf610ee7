// What is known of multi-head latent attention, whatever computes it.
#include <cmath>

#include "attention/layer.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;

constexpr std::int64_t kRotary = 2;

/// Four heads of 6 + 2 numbers and values of 9, with chunks of which there are several.
Fixture mla(std::int64_t length, std::int64_t latent, Overrides said = {},
            Pattern pattern = Pattern::causal) {
  Problem problem = test::two_by_two(length, 8, pattern);
  problem.heads = 4;
  problem.value_dim = 9;
  said.insert({{"latent", count(latent)},
               {"rotary", count(kRotary)},
               {"query_chunk", count(16)},
               {"key_chunk", count(8)}});
  return {"mla", problem, said};
}

/// [H, rows, columns] of unit matrices, from row `first` on.
at::Tensor units(std::int64_t heads, std::int64_t rows, std::int64_t first, std::int64_t columns) {
  return at::eye(rows, at::kDouble)
      .narrow(1, first, columns)
      .expand({heads, rows, columns})
      .clone();
}

Problem deepseek() {
  Problem problem;
  problem.heads = problem.kv_heads = 128;
  problem.length = problem.key_length = 4096;
  problem.head_dim = 192;
  problem.value_dim = 128;
  problem.dtype = Dtype::bfloat16;
  return problem;
}

Options resolved(const Problem& problem, const Overrides& said = {}) {
  const Entry& entry = test::registry().entry("mla");
  return entry.derive(Options::resolve(entry.options, said), problem);
}

std::shared_ptr<Mechanism> made(const Problem& problem, const Overrides& said = {}) {
  return test::registry().entry("mla").make(resolved(problem, said), problem);
}

}  // namespace

TEST_CASE("mla: up-projections that copy the latent leave softmax over one shared head", "[mla]") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional, Pattern::cross}) {
    CAPTURE(to_string(pattern));
    // A latent of 15 numbers: 6 are every head's key, 9 its value.
    Fixture held = mla(37, 15, {}, pattern);
    held.parameters["key_up"] = units(4, 15, 0, 6);
    held.parameters["value_up"] = units(4, 15, 6, 9);
    Fixture softmax("softmax", held.problem);
    const at::Tensor& latent = held.inputs["latent"];
    softmax.inputs.tensors["query"] = held.inputs["query"];
    softmax.inputs.tensors["key"] =
        at::cat({latent.narrow(3, 0, 6), held.inputs["key_rotary"]}, 3).expand({-1, 4, -1, -1});
    softmax.inputs.tensors["value"] = latent.narrow(3, 6, 9).expand({-1, 4, -1, -1});
    const at::Tensor want = softmax.output("composite");
    auto gradients = softmax.gradients("composite");
    // What the shared head gets from each.
    const at::Tensor d_key = gradients["key"].sum(1, true);
    const at::Tensor d_latent =
        at::cat({d_key.narrow(3, 0, 6), gradients["value"].sum(1, true)}, 3);
    for (const auto& name : test::implementations_of("mla")) {
      CAPTURE(name);
      CHECK(relative_error(held.output(name), want) < 1e-13);
      auto found = held.gradients(name);
      // The upstream gradient is that of both: seeded by its shape.
      CHECK(relative_error(found["query"], gradients["query"]) < 1e-12);
      CHECK(relative_error(found["latent"], d_latent) < 1e-12);
      CHECK(relative_error(found["key_rotary"], d_key.narrow(3, 6, kRotary)) < 1e-12);
    }
  }
}

TEST_CASE("mla: scores against the latents are those of decompressed keys, with all gradients",
          "[mla]") {
  const Fixture held = mla(53, 11);
  const at::Tensor want = held.output("composite");
  const auto gradients = held.gradients("composite");
  CHECK(gradients.size() == 5);  // of three roles and two parameters
  for (const auto& name : test::implementations_of("mla")) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), want) < 1e-13);
    for (const auto& [what, gradient] : held.gradients(name)) {
      CAPTURE(what);
      CHECK(relative_error(gradient, gradients.at(what)) < 1e-12);
    }
  }
}

TEST_CASE("mla: a state holds latent + rotary numbers for a token, however many heads", "[mla]") {
  const Fixture held = mla(10, 11);
  CHECK(held.inputs["latent"].sizes() == at::IntArrayRef({2, 1, 10, 11}));
  CHECK(held.inputs["key_rotary"].sizes() == at::IntArrayRef({2, 1, 10, kRotary}));
  State state = held.empty_state(at::kFloat);
  CHECK(state.bytes() == 2 * 10 * (11 + kRotary) * 4);
  Problem problem = held.problem;
  problem.dtype = Dtype::float32;
  for (const std::int64_t kv_heads : {1, 2, 4}) {
    problem.kv_heads = kv_heads;
    const std::int64_t groups = kv_heads == 2 ? 2 : 1;
    const std::int64_t bytes = groups * state.bytes();
    CHECK(made(problem, {{"latent", count(11)}, {"rotary", count(kRotary)}})
              ->empty_state(2, 10, at::TensorOptions(at::kFloat))
              .bytes() == bytes);
    for (const auto& name : test::implementations_of("mla")) {
      CHECK(held.entry.implementation(name).cost(held.options, problem).state_bytes ==
            static_cast<double>(bytes));
    }
  }
  held.step("composite", state, 0, 10, at::kFloat);
  CHECK_THROWS_WITH(held.step("absorbed", state, 0, 1, at::kFloat),
                    "mla: the state has room for 10 tokens, not for 11");
}

TEST_CASE("mla: a few tokens after a context are mixed in the latents", "[mla]") {
  const Fixture held = mla(40, 11);
  const auto continued = [&](const std::string& name, std::int64_t tokens) {
    State state = held.empty_state();
    held.step("composite", state, 0, 20);
    return held.step(name, state, 20, 20 + tokens);
  };
  for (const std::string name : {"chunked", "tiled"}) {
    CAPTURE(name);
    for (const std::int64_t tokens : {1, 7}) {
      CHECK(at::equal(continued(name, tokens), continued("absorbed", tokens)));
    }
    const at::Tensor block = continued(name, 8);
    CHECK_FALSE(at::equal(block, continued("absorbed", 8)));  // in the last digits
    CHECK(relative_error(block, continued("absorbed", 8)) < 1e-13);
  }
}

TEST_CASE("mla: groups of heads with latents of their own are so many of it", "[mla]") {
  Problem problem = mla(23, 11).problem;
  problem.kv_heads = 2;
  problem.dtype = Dtype::float64;
  const Overrides said{{"latent", count(11)}, {"rotary", count(kRotary)}};
  const auto whole = made(problem, said);
  const Inputs inputs = random_inputs(*whole, 5, 1, false);
  Problem half = problem;
  half.heads = 2;
  half.kv_heads = 1;
  const Entry& entry = test::registry().entry("mla");
  const at::NoGradGuard no_grad;
  for (const std::int64_t group : {0, 1}) {
    const auto part = made(half, said);
    for (auto& item : part->named_parameters()) {
      item.value().copy_(whole->named_parameters()[item.key()].narrow(0, 2 * group, 2));
    }
    Inputs own;
    own.tensors["query"] = inputs["query"].narrow(1, 2 * group, 2);
    for (const char* role : {"latent", "key_rotary"}) {
      own.tensors[role] = inputs[role].narrow(1, group, 1);
    }
    for (const auto& name : test::implementations_of("mla")) {
      CAPTURE(group, name);
      const auto& mix = entry.implementation(name).mix;
      CHECK(relative_error(mix(*whole, inputs, nullptr).output.narrow(1, 2 * group, 2),
                           mix(*part, own, nullptr).output) < 1e-13);
    }
  }
}

TEST_CASE("mla: sizes that are not said are the published ones", "[mla]") {
  const Options options = resolved(deepseek());
  CHECK(options.integer("latent") == 512);
  CHECK(options.integer("rotary") == 64);
  Problem grouped = deepseek();
  grouped.kv_heads = 2;  // GLA-2: two latents of half the size
  CHECK(resolved(grouped).integer("latent") == 256);
  Problem narrow = deepseek();
  narrow.head_dim = 1;
  CHECK(resolved(narrow).integer("rotary") == 0);
  CHECK(resolved(narrow).integer("latent") == 4);
  CHECK(made(narrow)->roles().size() == 2);
  narrow.head_dim = 5;
  CHECK(resolved(narrow).integer("rotary") == 2);
  CHECK(resolved(deepseek(), {{"rotary", count(0)}}).integer("latent") == 768);
  CHECK(resolved(deepseek(), {{"rotary", count(191)}, {"latent", count(7)}}).integer("latent") ==
        7);
  CHECK_THROWS_WITH(resolved(deepseek(), {{"rotary", count(192)}}),
                    Catch::Contains("mla: rotary 192 of head_dim 192") &&
                        Catch::Contains("expected less than head_dim"));
  CHECK_THROWS_AS(resolved(deepseek(), {{"latent", count(-1)}}), UsageError);
}

TEST_CASE("mla: costs of DeepSeek V3's sizes", "[mla]") {
  const Problem problem = deepseek();
  const Options options = resolved(problem);
  const double heads = 128, tokens = 4096, pairs = heads * tokens * (tokens + 1) / 2;
  const double decompressing = 2 * tokens * heads * 512 * (128 + 128);
  for (const auto& name : test::implementations_of("mla")) {
    CAPTURE(name);
    const Implementation& implementation = test::registry().entry("mla").implementation(name);
    const Cost cost = implementation.cost(options, problem);
    CHECK(cost.model_flops == 2 * pairs * (192 + 128) + decompressing);
    CHECK(cost.executed_flops > cost.model_flops);
    CHECK(cost.state_bytes == 2 * tokens * 576);
    CHECK(cost.minimal_bytes ==
          2 * (tokens * heads * (192 + 128) + tokens * 576 + heads * 512 * (128 + 128)));
  }
  const auto executed = [&](const char* name) {
    return test::registry().entry("mla").implementation(name).cost(options, problem).executed_flops;
  };
  CHECK(executed("composite") == 2 * heads * tokens * tokens * (192 + 128) + decompressing);
  CHECK(executed("absorbed") == 2 * heads * tokens * tokens * (2 * 512 + 64) + decompressing);
}

TEST_CASE("mla: memory is what is predicted, forward and for the backward pass", "[mla]") {
  for (const std::int64_t kv_heads : {1, 2}) {
    for (const auto& name : test::implementations_of("mla")) {
      Problem problem;
      problem.heads = 4;
      problem.kv_heads = kv_heads;
      problem.length = problem.key_length = 512;
      problem.head_dim = 96;
      problem.value_dim = 64;
      const Overrides said{{"query_chunk", count(64)}, {"key_chunk", count(64)}};
      const Options options = resolved(problem, said);
      const Implementation& form = test::registry().entry("mla").implementation(name);
      for (const bool gradient : {false, true}) {
        problem.gradient = gradient;
        const auto mechanism = made(problem, said);
        const Inputs inputs = random_inputs(*mechanism, 3, 1, gradient);
        const at::AutoGradMode record(gradient);
        const test::MemoryCount memory;
        const at::Tensor y = form.mix(*mechanism, inputs, nullptr).output;
        const auto output = static_cast<std::int64_t>(y.nbytes());
        const Cost cost = form.cost(options, problem);
        const auto peak = static_cast<double>(memory.peak() - output);
        const auto live = static_cast<double>(memory.live() - output);
        CAPTURE(name, kv_heads, gradient, peak, cost.workspace_bytes, live, cost.saved_bytes);
        if (gradient) {
          CHECK(live < 1.3 * cost.saved_bytes);
          CHECK(live > 0.7 * cost.saved_bytes);
        } else {
          CHECK(live < 1024);
          CHECK(peak < 1.3 * cost.workspace_bytes);
          CHECK(peak > 0.7 * cost.workspace_bytes);
        }
      }
    }
  }
}

TEST_CASE("mla: a step reads the state where it lies", "[mla]") {
  Problem problem = deepseek();
  problem.heads = problem.kv_heads = 8;
  problem.dtype = Dtype::float32;
  const auto mechanism = made(problem);
  const auto numbers = at::TensorOptions(at::kFloat);
  State state = mechanism->empty_state(1, 4096, numbers);
  state.position = 4000;
  Inputs inputs;
  inputs.tensors["query"] = at::randn({1, 8, 1, 192}, numbers);
  inputs.tensors["latent"] = at::randn({1, 1, 1, 512}, numbers);
  inputs.tensors["key_rotary"] = at::randn({1, 1, 1, 64}, numbers);
  const at::NoGradGuard no_grad;
  const Entry& entry = test::registry().entry("mla");
  for (const char* name : {"absorbed", "chunked", "tiled"}) {
    CAPTURE(name);
    State copy = state.clone();
    const test::MemoryCount memory;
    entry.implementation(name).mix(*mechanism, inputs, &copy);
    // Two rows of scores and little else.
    CHECK(memory.peak() < 8 * 4001 * 4 * 3);
    CHECK(memory.peak() < state.bytes() / 10);
  }
}

TEST_CASE("mla: rotary positions turn the rotary key and the end of each query alone", "[mla]") {
  Problem problem = mla(5, 11).problem;
  problem.dtype = Dtype::float64;
  const Overrides said{{"latent", count(11)}, {"rotary", count(4)}};
  const Implementation& composite = test::registry().entry("mla").implementation("composite");
  Layer plain(made(problem, said), composite, Scope::projected, 3);
  Layer turned(made(problem, said), composite, Scope::projected, 3);
  turned.use_rotary_positions();
  // One token, five times: without positions all rows are alike.
  const at::Tensor x = at::randn({2, 1, problem.width()}, at::kDouble).expand({2, 5, -1});
  const Inputs before = plain.project(x, x);
  const Inputs after = turned.project(x, x);
  CHECK(at::equal(before["latent"], after["latent"]));
  CHECK(at::equal(before["query"].narrow(3, 0, 4), after["query"].narrow(3, 0, 4)));
  const at::Tensor query = before["query"].narrow(3, 4, 4),
                   rotated = after["query"].narrow(3, 4, 4);
  const at::Tensor& key = before["key_rotary"];
  const at::Tensor& rotated_key = after["key_rotary"];
  const at::Tensor scores = at::matmul(rotated, rotated_key.transpose(2, 3));
  for (std::int64_t t = 0; t < 5; ++t) {
    CHECK(relative_error(rotated.select(2, t).norm(), query.select(2, t).norm()) < 1e-14);
    for (std::int64_t s = 0; s < t; ++s) {  // the distance decides
      CHECK(relative_error(scores.select(2, t).select(2, s), scores.select(2, t - s).select(2, 0)) <
            1e-13);
    }
  }
  CHECK(relative_error(scores.select(2, 4).select(2, 4),
                       at::matmul(query, key.transpose(2, 3)).select(2, 4).select(2, 4)) < 1e-13);
  CHECK(relative_error(scores.select(2, 4).select(2, 0), scores.select(2, 4).select(2, 4)) > 0.01);
  // Without a rotary part there is nothing to rotate.
  Layer none(made(problem, {{"rotary", count(0)}}), composite, Scope::projected, 3);
  CHECK_THROWS_WITH(none.use_rotary_positions(), Catch::Contains("mla: rotary positions need"));
}

}  // namespace attnbench
