// The RG-LRU's implementations against its definition, and what is known of it.

#include <cmath>

#include "attention/conformance/conformance.hpp"
#include "tests/attention/held.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;

const std::vector<std::string> implementations{"composite", "scan", "chunked"};

/// With biases that are not zero.
Held rg_lru(std::int64_t length, std::int64_t width, std::int64_t chunk = 8,
            const std::string& first_input = "scaled") {
  Problem problem;
  problem.batch = problem.heads = 2;
  problem.length = length;
  problem.head_dim = problem.value_dim = width;
  problem.gradient = true;
  Held held("rg_lru", problem, {{"chunk", chunk}, {"first_input", first_input}});
  held.parameters["recurrence_bias"].copy_(at::linspace(-1, 1, 2 * width).view({2, width}));
  held.parameters["input_bias"].copy_(at::linspace(1, -0.5, 2 * width).view({2, width}));
  return held;
}

}  // namespace

TEST_CASE("rg_lru: every form equals the definition at odd sizes") {
  for (const auto& [length, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 43}, {3, 1}, {8, 7}, {257, 43}}) {
    const Held held = rg_lru(length, width);
    const at::Tensor expected = held.expected();
    for (const auto& name : implementations) {
      CAPTURE(length, width, name);
      CHECK(relative_error(held.output(name), expected) < 1e-12);
      CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
    }
  }
}

TEST_CASE("rg_lru: gradients of inputs, lambda and biases are those of the definition") {
  for (const auto& name : implementations) {
    Held held = rg_lru(37, 5, 2);  // pieces of 32 tokens: the gradient crosses their border
    held.inputs.key_mask = at::ones({2, 37}, at::kBool);
    held.inputs.key_mask[0].slice(0, 4, 9).fill_(false);
    CHECK(held.gradients(name).size() == 6);
    test::check_gradients(held, name);
  }
}

TEST_CASE("rg_lru: steps and blocks equal the whole over 2000 tokens") {
  const Held held = rg_lru(2000, 3);
  const at::Tensor whole = held.output("composite");
  for (const auto& name : implementations) {
    CAPTURE(name);
    State state = held.empty_state();
    const auto bytes = state.bytes();
    std::vector<at::Tensor> outputs;
    for (std::int64_t done = 0; done < 2000;) {
      const std::int64_t count = done < 1900 ? (done % 3 == 0 ? 95 : 1) : 1;
      const std::int64_t end = std::min<std::int64_t>(2000, done + count);
      outputs.push_back(held.step(name, state, done, end));
      done = end;
    }
    CHECK(relative_error(at::cat(outputs, 2), whole) < 1e-12);
    CHECK(state.position == 2000);
    CHECK(state.bytes() == bytes);
  }
}

TEST_CASE("rg_lru: a stream of a million tokens leaves memory flat") {
  const at::NoGradGuard no_grad;
  constexpr std::int64_t block = 8192;
  Held held = rg_lru(block, 2);
  held.problem.batch = held.problem.heads = held.problem.kv_heads = 1;
  held.problem.dtype = Dtype::float32;
  const auto mechanism = held.entry.make(held.options, held.problem);
  Inputs inputs;
  for (const auto& [role, tensor] : held.inputs.tensors) {
    inputs.tensors[role] = tensor.narrow(0, 0, 1).narrow(1, 0, 1).to(at::kFloat);
  }
  const auto& mix = held.entry.implementation("chunked").mix;
  State state = mechanism->empty_state(1, 0, at::TensorOptions(at::kFloat));
  const test::MemoryCount count;
  std::int64_t live = 0;
  std::int64_t peak = 0;
  at::Tensor last;
  while (state.position < 1'000'000) {
    last = mix(*mechanism, inputs, &state).output;
    if (state.position > 2 * block) continue;
    live = count.live();
    peak = count.peak();
  }
  CHECK(count.live() == live);
  CHECK(count.peak() == peak);
  CHECK(live > 0);
  // A recurrence that contracts forgets how it began: the same tokens again give the same.
  CHECK(relative_error(mix(*mechanism, inputs, &state).output, last) < 1e-6);
}

TEST_CASE("rg_lru: padded tokens pass the state by, whatever they hold") {
  for (const auto& name : implementations) {
    const Held held = rg_lru(40, 5);
    test::Padding padding{3, 21, {}};
    for (const auto& [role, tensor] : held.inputs.tensors) padding.roles.push_back(role);
    test::check_padding(held, name, padding);
  }
}

TEST_CASE("rg_lru: a closed gate holds the state, an open one forgets it") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    Held held = rg_lru(20, 3);
    // sigmoid(-1000) is 0: a is 1 and nothing enters.
    held.inputs.tensors["recurrence_gate"].slice(2, 10, 20).fill_(-1000);
    const at::Tensor y = held.output(name);
    CHECK(at::equal(y.slice(2, 10, 20), y.slice(2, 9, 10).expand({2, 2, 10, 3})));
    for (const auto& [what, gradient] : held.gradients(name)) {
      CAPTURE(what);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
    // softplus(1000) is 1000: a is 0, and the output the gated value itself.
    held.inputs.tensors["recurrence_gate"].fill_(3);
    held.parameters["lambda"].fill_(1000);
    held.parameters["input_bias"].zero_();
    const at::Tensor gated = at::sigmoid(held.inputs["input_gate"]) * held.inputs["value"];
    CHECK(relative_error(held.output(name), gated) < 1e-12);
  }
}

TEST_CASE("rg_lru: a plain first input is the definition's in every form", "[rg_lru]") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    for (const std::int64_t length : {1, 3, 43}) {
      const Held held = rg_lru(length, 5, 2, "plain");
      CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
    }
    Held held = rg_lru(37, 5, 2, "plain");
    // h_0 = i_0 v_0, and it is not what the scaled form has.
    const at::Tensor i =
        at::sigmoid(held.inputs["input_gate"] + held.parameters["input_bias"].unsqueeze(1));
    const at::Tensor plain = (i * held.inputs["value"]).select(2, 0);
    CHECK(relative_error(held.output(name).select(2, 0), plain) < 1e-12);
    CHECK(relative_error(rg_lru(37, 5, 2).output(name).select(2, 0), plain) > 0.1);
    test::check_gradients(held, name);
    // The first real token, wherever it stands: in the second piece of 32, too.
    held.inputs.key_mask = at::ones({2, 37}, at::kBool);
    held.inputs.key_mask[0].slice(0, 0, 4).fill_(false);
    held.inputs.key_mask[1].slice(0, 0, 35).fill_(false);
    CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
    test::check_gradients(held, name);
    test::check_padding(rg_lru(40, 5, 8, "plain"), name,
                        {0, 21, {"recurrence_gate", "input_gate", "value"}});
  }
  test::check_steps(rg_lru(20, 5, 2, "plain"), implementations, {1, 2, 7});
}

TEST_CASE("rg_lru: a sequence begins with its first real token, in a later call as well") {
  const Held whole = [] {
    Held held = rg_lru(12, 3, 2, "plain");
    held.inputs.key_mask = at::ones({2, 12}, at::kBool);
    held.inputs.key_mask[1].slice(0, 0, 6).fill_(false);
    return held;
  }();
  for (const auto& name : implementations) {
    CAPTURE(name);
    State state = whole.empty_state();
    std::vector<at::Tensor> outputs;
    for (const auto& [begin, end] : std::vector<std::pair<int, int>>{{0, 4}, {4, 5}, {5, 12}}) {
      outputs.push_back(whole.step(name, state, begin, end));
    }
    CHECK(relative_error(at::cat(outputs, 2), whole.expected()) < 1e-12);
  }
}

TEST_CASE("rg_lru: every property holds with recurrentgemma's choices", "[conformance]") {
  const Entry entry = test::registry().entry("rg_lru");
  for (const Implementation& implementation : entry.implementations) {
    for (const Dtype dtype : {Dtype::float64, Dtype::float32}) {
      conformance::CheckOptions options;
      options.options = {{"first_input", std::string("plain")},
                         {"decay_init", std::string("recurrentgemma")}};
      for (const auto& finding :
           conformance::check(entry, test::registry().reference("rg_lru"), implementation,
                              Pattern::causal, dtype, options)) {
        INFO(implementation.name << " " << finding.property << ": " << finding.reason);
        CHECK(finding.status != conformance::Status::broken);
      }
    }
  }
}

TEST_CASE("rg_lru: every property holds in both directions", "[conformance]") {
  const Entry entry = test::registry().entry("rg_lru");
  for (const Implementation& implementation : entry.implementations) {
    for (const char* first : {"scaled", "plain"}) {
      conformance::CheckOptions options;
      options.options = {{"directions", std::string("both")}, {"first_input", std::string(first)}};
      int held = 0;
      for (const auto& finding :
           conformance::check(entry, test::registry().reference("rg_lru"), implementation,
                              Pattern::bidirectional, Dtype::float64, options)) {
        INFO(implementation.name << " " << finding.property << ": " << finding.reason);
        CHECK(finding.status != conformance::Status::broken);
        held += finding.status == conformance::Status::held;
      }
      CHECK(held >= 5);
    }
  }
}

TEST_CASE("rg_lru: both directions are two recurrences, one over the reversed tokens") {
  Problem problem;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 37;
  problem.head_dim = problem.value_dim = 5;
  problem.gradient = true;
  problem.pattern = Pattern::bidirectional;
  for (const auto& name : implementations) {
    CAPTURE(name);
    Held both("rg_lru", problem, {{"chunk", test::count(2)}, {"directions", test::word("both")}});
    CHECK(relative_error(both.output(name), both.expected()) < 1e-12);
    both.inputs.key_mask = at::ones({2, 37}, at::kBool);
    both.inputs.key_mask[0].slice(0, 29, 37).fill_(false);
    CHECK(relative_error(both.output(name), both.expected()) < 1e-12);
    test::check_gradients(both, name);
    both.inputs.key_mask = at::Tensor();
    Held ahead = rg_lru(37, 5, 2);
    Held back = rg_lru(37, 5, 2);
    ahead.inputs = both.inputs;
    for (const auto& [role, tensor] : both.inputs.tensors) {
      back.inputs.tensors[role] = tensor.flip({2});
    }
    for (const char* own : {"lambda", "recurrence_bias", "input_bias"}) {
      ahead.parameters[own] = both.parameters[own];
      back.parameters[own] = both.parameters["backward_" + std::string(own)];
    }
    CHECK(relative_error(both.output(name), ahead.output(name) + back.output(name).flip({2})) <
          1e-12);
    CHECK_FALSE(at::equal(both.parameters["lambda"], both.parameters["backward_lambda"]));
  }
  const Entry& entry = test::registry().entry("rg_lru");
  const auto support = [&](Pattern pattern, const char* directions) {
    problem.pattern = pattern;
    return entry.supports(
        Options::resolve(entry.options, {{"directions", std::string(directions)}}), problem);
  };
  CHECK_THAT(support(Pattern::bidirectional, "forward").reason, Catch::Contains("directions=both"));
  CHECK_THAT(support(Pattern::causal, "both").reason, Catch::Contains("directions=forward"));
  CHECK(support(Pattern::causal, "forward"));
  CHECK(support(Pattern::bidirectional, "both"));
}

TEST_CASE("rg_lru: recurrentgemma's lambda has the eighth root of the decay on a ring") {
  Problem problem;
  problem.heads = problem.kv_heads = 2;
  problem.head_dim = problem.value_dim = 2000;
  problem.dtype = Dtype::float64;
  const Entry entry = test::registry().entry("rg_lru");
  const Options options =
      Options::resolve(entry.options, {{"decay_init", std::string("recurrentgemma")}});
  const auto mechanism = entry.make(options, problem);
  const at::Tensor drawn = mechanism->named_parameters()["lambda"].detach();
  const at::Tensor square = (at::softplus(drawn) * -2).exp();  // of a^(1/8)
  CHECK(square.min().item<double>() > 0.81 - 1e-6);
  CHECK(square.max().item<double>() < 0.998001 + 1e-6);
  // Uniform: mean and mean square.
  CHECK(square.mean().item<double>() == Approx((0.81 + 0.998001) / 2).margin(0.004));
  CHECK(square.var().item<double>() == Approx(std::pow(0.188001, 2) / 12).epsilon(0.05));
}

TEST_CASE("rg_lru: lambda is drawn so that fully gated decays lie in [0.9, 0.999]") {
  Held held = rg_lru(1, 500);
  for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
    CAPTURE(to_string(dtype));
    held.problem.dtype = dtype;
    const auto mechanism = held.entry.make(held.options, held.problem);
    const at::Tensor drawn = mechanism->named_parameters()["lambda"].detach().clone();
    const at::Tensor decay = (at::softplus(drawn.to(at::kDouble)) * -8).exp();
    const double slack = dtype == Dtype::float64 ? 1e-9 : 4e-3;
    CHECK(decay.min().item<double>() > 0.9 - slack);
    CHECK(decay.max().item<double>() < 0.999 + slack);
    CHECK(decay.mean().item<double>() == Approx(0.9495).margin(0.004));
    mechanism->draw_parameters(7);
    CHECK_FALSE(at::equal(mechanism->named_parameters()["lambda"], drawn));
  }
  held.problem.pattern = Pattern::bidirectional;
  CHECK_FALSE(held.entry.supports(held.options, held.problem));
}

}  // namespace attnbench
