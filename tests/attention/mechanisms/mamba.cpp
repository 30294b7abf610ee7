// What is known of Mamba's selective state space, whatever computes it.
#include <cmath>

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
using test::word;

/// With chunks of which there are several, the last one shorter.
Fixture mamba(std::int64_t length, Overrides said = {}, std::int64_t width = 6) {
  said.insert({{"chunk", count(8)}, {"state", count(5)}});
  return {"mamba", test::two_by_two(length, width), said};
}

/// The implementations that support its problem: the kernel has no constants.
std::vector<std::string> forms(const Fixture& held) {
  std::vector<std::string> names;
  for (const Implementation& form : held.entry.implementations) {
    if (form.supports(held.options, held.problem)) names.push_back(form.name);
  }
  return names;
}

/// Values and gradients of each form are those of the fixture `want`, of the roles that it has.
void check_same(const Fixture& held, const Fixture& want) {
  const at::Tensor output = want.output("composite");
  const auto gradients = want.gradients("composite");
  for (const auto& name : forms(held)) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), output) < 1e-13);
    for (const auto& [role, gradient] : held.gradients(name)) {
      CAPTURE(role);
      if (role == "value") CHECK(relative_error(gradient, gradients.at(role)) < 1e-12);
    }
  }
}

/// delta of a number that softplus is taken of.
at::Tensor step_of(const at::Tensor& raw) { return at::log1p(at::exp(raw)); }

/// The same numbers of each token, [2, 2, T, .] of [2, .].
at::Tensor for_tokens(const at::Tensor& of_heads, std::int64_t length) {
  return of_heads.view({1, 2, 1, -1}).expand({2, 2, length, of_heads.size(-1)}).contiguous();
}

}  // namespace

TEST_CASE("mamba: constants are a convolution, whose kernel is a sum of decays", "[mamba]") {
  constexpr std::int64_t length = 37;
  for (const char* turning : {"none", "linear", "inverse"}) {
    Fixture held = mamba(length, {{"selective", false}, {"turning", word(turning)}});
    const auto& own = held.parameters;
    CHECK(held.inputs.tensors.size() == 1);
    // K_k = sum_n C_n e^(A_n delta k) delta B_n for each channel, [H, k, D]; 2 Re where complex.
    const bool complex = own.count("turn") != 0;
    CHECK(complex == (std::string(turning) != "none"));
    const auto number = [&](const at::Tensor& real, const char* of_i) {
      return complex ? at::complex(real, own.at(of_i)) : real;
    };
    const at::Tensor delta = step_of(own.at("bias")).unsqueeze(1);
    const at::Tensor gain =
        number(own.at("read_weight"), "read_turn") * own.at("input_weight") * delta;
    const at::Tensor exponent = number(-own.at("a_log").exp(), "turn") * delta;
    const at::Tensor place = at::arange(length, at::kDouble).view({-1, 1, 1});
    const at::Tensor sums = (gain.unsqueeze(1) * at::exp(exponent.unsqueeze(1) * place)).sum(2);
    const at::Tensor kernel = complex ? at::real(sums) * 2 : sums;
    at::Tensor want = own.at("skip").unsqueeze(1) * held.inputs["value"];
    for (std::int64_t k = 0; k < length; ++k) {
      want.narrow(2, k, length - k) +=
          kernel.narrow(1, k, 1) * held.inputs["value"].narrow(2, 0, length - k);
    }
    for (const auto& name : forms(held)) {
      CAPTURE(turning, name);
      CHECK(relative_error(held.output(name), want) < 1e-13);
    }
  }
}

TEST_CASE("mamba: tokens that all say the same are constants", "[mamba]") {
  Fixture fixed = mamba(37, {{"selective", false}});
  Fixture selective = mamba(37);
  // Of each head, as keys and queries are; and what the token says adds to the bias.
  const at::Tensor key = at::randn({2, 5}, at::kDouble), query = at::randn({2, 5}, at::kDouble);
  for (const auto& [name, row] : {std::pair("input_weight", key), {"read_weight", query}}) {
    fixed.parameters.at(name).copy_(row.unsqueeze(2).expand({2, 5, 8}));
  }
  const at::Tensor said = at::randn({2, 8}, at::kDouble);
  for (const char* name : {"a_log", "bias", "skip"}) {
    fixed.parameters.at(name).copy_(at::randn_like(fixed.parameters.at(name)));
    selective.parameters.at(name).copy_(fixed.parameters.at(name));
  }
  fixed.parameters.at("bias") += said;
  selective.inputs.tensors["value"] = fixed.inputs["value"];
  selective.inputs.tensors["key"] = for_tokens(key, 37);
  selective.inputs.tensors["query"] = for_tokens(query, 37);
  selective.inputs.tensors["time_step"] = for_tokens(said, 37);
  check_same(selective, fixed);
  check_same(fixed, selective);
}

TEST_CASE("mamba: of one number, whose key divides by the step, it is a gated mean", "[mamba]") {
  // Theorem 1 of the paper: h_t = (1 - g_t) h_{t-1} + g_t x_t, g_t = sigmoid(z_t); 1 - g is
  // e^-softplus(z), and an input that is held for the step writes g.
  Problem one = test::two_by_two(37, 6);
  one.value_dim = 1;
  Fixture held("mamba", one, {{"state", count(1)}, {"chunk", count(8)}});
  held.parameters.at("bias").fill_(0.5);
  held.parameters.at("skip").zero_();
  const at::Tensor raw = held.inputs["time_step"] + 0.5, gate = at::sigmoid(raw);
  held.inputs.tensors["key"] = gate / step_of(raw);
  held.inputs.tensors["query"].fill_(1);
  at::Tensor mean = at::zeros({2, 2, 1}, at::kDouble);
  std::vector<at::Tensor> want;
  for (std::int64_t t = 0; t < 37; ++t) {
    const at::Tensor g = gate.select(2, t);
    mean = (1 - g) * mean + g * held.inputs["value"].select(2, t);
    want.push_back(mean);
  }
  for (const auto& name : forms(held)) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), at::stack(want, 2)) < 1e-13);
  }
}

TEST_CASE("mamba: steps without end forget what was, steps of 0 leave it", "[mamba]") {
  const Fixture drawn = mamba(37);
  const at::Tensor value = drawn.inputs["value"];
  const at::Tensor skipped = drawn.parameters.at("skip").unsqueeze(1) * value;
  const at::Tensor match = (drawn.inputs["key"] * drawn.inputs["query"]).sum(-1, true);
  for (const auto& name : forms(drawn)) {
    CAPTURE(name);
    Fixture held = drawn;
    held.inputs.tensors["time_step"].fill_(1000);
    const at::Tensor delta = 1000 + held.parameters.at("bias").unsqueeze(1);
    CHECK(relative_error(held.output(name), delta * value * match + skipped) < 1e-13);
    held.inputs.tensors["time_step"].fill_(-1000);
    CHECK(relative_error(held.output(name), skipped) < 1e-13);
    // The state of token 9 is read from there on.
    held.inputs.tensors["time_step"].narrow(2, 0, 10).fill_(1);
    held.inputs.tensors["query"] = held.inputs["query"].narrow(2, 9, 1).expand({2, 2, 37, 5});
    const at::Tensor y = held.output(name) - skipped;
    CHECK(relative_error(y.narrow(2, 10, 27), y.narrow(2, 9, 1).expand({2, 2, 27, 8})) < 1e-12);
    for (const auto& [role, gradient] : held.gradients(name, at::kFloat)) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("mamba: with one decay and one step for all of a head it is mamba2", "[mamba]") {
  Fixture held = mamba(53);
  Fixture mamba2("mamba2", held.problem, {{"state", count(5)}});
  for (const char* name : {"a_log", "bias", "skip"}) {
    at::Tensor& own = held.parameters.at(name);
    const at::Tensor& theirs = mamba2.parameters.at(name);  // [H, 1]
    own.copy_(own.dim() == 3 ? theirs.unsqueeze(2).expand_as(own) : theirs.expand_as(own));
  }
  for (const char* role : {"query", "key", "value"}) {
    held.inputs.tensors[role] = mamba2.inputs[role];
  }
  held.inputs.tensors["time_step"] = mamba2.inputs["time_step"].expand({2, 2, 53, 8}).contiguous();
  held.upstream = mamba2.upstream;
  check_same(held, mamba2);
}

TEST_CASE("mamba: steps of few numbers are those that their weight makes", "[mamba]") {
  Fixture narrow = mamba(37, {{"step_rank", count(3)}});
  Fixture wide = mamba(37);
  for (const char* name : {"a_log", "bias", "skip"}) {
    wide.parameters.at(name).copy_(narrow.parameters.at(name));
  }
  for (const auto& [role, tensor] : narrow.inputs.tensors) wide.inputs.tensors[role] = tensor;
  wide.inputs.tensors["time_step"] =
      at::matmul(narrow.inputs["time_step"], narrow.parameters.at("step_weight"));
  CHECK(narrow.inputs["time_step"].size(3) == 3);
  check_same(narrow, wide);
}

TEST_CASE("mamba: heads with one key and query are heads that are alike in them", "[mamba]") {
  const Fixture apart = mamba(37);
  const Entry& entry = apart.entry;
  Problem shared = apart.problem;
  shared.kv_heads = 1;
  shared.dtype = Dtype::float64;
  const auto mechanism = entry.make(apart.options, shared);
  const at::NoGradGuard no_grad;
  for (auto& item : mechanism->named_parameters()) {
    item.value().copy_(apart.parameters.at(item.key()));
  }
  Fixture alike = apart;
  Inputs inputs = apart.inputs;
  for (const char* role : {"query", "key"}) {
    inputs.tensors[role] = apart.inputs[role].narrow(1, 0, 1);
    alike.inputs.tensors[role] = inputs[role].expand({2, 2, 37, 5}).contiguous();
  }
  for (const auto& name : forms(apart)) {
    CAPTURE(name);
    const at::Tensor y = entry.implementation(name).mix(*mechanism, inputs, nullptr).output;
    CHECK(relative_error(y, alike.output(name)) < 1e-13);
  }
}

TEST_CASE("mamba: the gate multiplies by silu", "[mamba]") {
  Fixture plain = mamba(37), gated = mamba(37, {{"output", word("gated")}});
  for (const auto& [role, tensor] : plain.inputs.tensors) gated.inputs.tensors[role] = tensor;
  const at::Tensor gate = gated.inputs["output_gate"];
  for (const auto& name : forms(plain)) {
    CAPTURE(name);
    const at::Tensor want = plain.output(name) * gate * at::sigmoid(gate);
    CHECK(relative_error(gated.output(name), want) < 1e-13);
  }
}

TEST_CASE("mamba: a state of N numbers a channel, whatever was seen", "[mamba]") {
  const Overrides complex{{"selective", false}, {"turning", word("linear")}};
  for (const Overrides& said : {Overrides{}, Overrides{{"selective", false}}, complex}) {
    const Fixture held = mamba(40, said);
    const std::int64_t bytes = (said.size() == 2 ? 2 : 1) * (2 * 2 * 8 * 5 * 4);
    for (const auto& name : forms(held)) {
      CAPTURE(said.size(), name);
      State state = held.empty_state(at::kFloat);
      CHECK(state.bytes() == bytes);
      held.step(name, state, 0, 30, at::kFloat);
      held.step(name, state, 30, 31, at::kFloat);
      CHECK(state.bytes() == bytes);
      CHECK(state.position == 31);
      Problem problem = held.problem;
      problem.dtype = Dtype::bfloat16;
      const Cost cost = held.entry.implementation(name).cost(held.options, problem);
      CHECK(cost.state_bytes == static_cast<double>(bytes));
    }
  }
}

TEST_CASE("mamba: parameters are drawn as in published code", "[mamba]") {
  const Fixture drawn("mamba", test::two_by_two(1, 500), {{"step_rank", count(4)}});
  const at::Tensor rates = drawn.parameters.at("a_log").exp();  // [2, 16, 502]
  const at::Tensor numbers = at::arange(1, 17, at::kDouble).view({1, 16, 1});
  CHECK(relative_error(rates, numbers.expand_as(rates)) < 1e-14);
  const at::Tensor step = step_of(drawn.parameters.at("bias"));
  CHECK(step.min().item<double>() >= 0.001 * (1 - 1e-6));
  CHECK(step.max().item<double>() <= 0.1 * (1 + 1e-6));
  CHECK(step.log().mean().item<double>() == Approx(std::log(0.01)).margin(0.15));
  CHECK(at::equal(drawn.parameters.at("skip"), at::ones({2, 502}, at::kDouble)));
  const at::Tensor weight = drawn.parameters.at("step_weight");
  CHECK(weight.abs().max().item<double>() <= 0.5);
  CHECK(weight.std().item<double>() == Approx(0.5 / std::sqrt(3)).epsilon(0.05));
}

TEST_CASE("mamba: complex constants begin as S4D-Lin and S4D-Inv", "[mamba]") {
  for (const char* turning : {"linear", "inverse"}) {
    CAPTURE(turning);
    const Fixture drawn("mamba", test::two_by_two(1, 500),
                        {{"selective", false}, {"turning", word(turning)}});
    const at::Tensor& turn = drawn.parameters.at("turn");  // [2, 16, 502]
    CHECK(relative_error(drawn.parameters.at("a_log").exp(), at::full_like(turn, 0.5)) < 1e-14);
    const double pi = std::acos(-1.0);
    for (const std::int64_t n : {0, 1, 15}) {
      const auto number = static_cast<double>(n);
      // Of N = 32 with conjugates.
      const double want =
          turning == std::string("linear") ? pi * number : 32 / pi * (32 / (2 * number + 1) - 1);
      const at::Tensor row = turn.select(1, n);
      CHECK(relative_error(row, at::full_like(row, want)) < 1e-14);
    }
    CHECK(drawn.parameters.at("read_weight").std().item<double>() ==
          Approx(std::sqrt(0.5)).epsilon(0.05));
    CHECK(drawn.parameters.at("read_turn").std().item<double>() ==
          Approx(std::sqrt(0.5)).epsilon(0.05));
  }
}

TEST_CASE("mamba: memory is as foreseen, and that of chunks is of their own tokens", "[mamba]") {
  const Overrides complex{{"selective", false}, {"turning", word("linear")}};
  for (const Overrides& said : {Overrides{}, Overrides{{"selective", false}}, complex}) {
    for (const Dtype dtype : {Dtype::float32, Dtype::bfloat16}) {
      const auto workspace = [&](const std::string& name, std::int64_t length) {
        Problem problem = test::two_by_two(length, 14);
        problem.kv_heads = 2;
        problem.dtype = dtype;
        problem.gradient = true;
        const Entry& entry = test::registry().entry("mamba");
        const Options options = Options::resolve(entry.options, said);
        const auto mechanism = entry.make(options, problem);
        Inputs inputs;
        for (const Role& role : mechanism->roles()) {
          inputs.tensors[role.name] =
              at::randn(mechanism->shape_of(role)).to(scalar_type(dtype)).requires_grad_(true);
        }
        const Implementation& form = entry.implementation(name);
        const Cost cost = form.cost(options, problem);
        const test::MemoryCount memory;
        const at::Tensor y = form.mix(*mechanism, inputs, nullptr).output;
        const auto output = static_cast<std::int64_t>(y.nbytes());
        const auto saved = static_cast<double>(memory.live() - output);
        const auto taken = static_cast<double>(memory.peak() - output);
        CAPTURE(said.size(), to_string(dtype), name, length, saved, cost.saved_bytes, taken,
                cost.workspace_bytes);
        CHECK(saved < 1.2 * cost.saved_bytes);
        CHECK(saved > 0.8 * cost.saved_bytes);
        // What is kept is in memory, too.
        CHECK(taken < 1.2 * (cost.workspace_bytes + (name == "chunked" ? saved : 0)));
        CHECK(taken > 0.8 * cost.workspace_bytes);
        return taken - saved;
      };
      for (const auto& name : forms(mamba(8, said))) workspace(name, 500);
      // All states would be 32 times as many as those of a chunk.
      CHECK(workspace("chunked", 4096) < 1.1 * workspace("chunked", 2048));
    }
  }
}

TEST_CASE("mamba: costs follow from the sizes", "[mamba]") {
  const Fixture held = mamba(37);
  const double tokens = 4 * 37, width = 8, state = 5;
  const auto cost_of = [](const Fixture& of, const char* form) {
    return of.entry.implementation(form).cost(of.options, of.problem);
  };
  const Cost composite = cost_of(held, "composite"), chunked = cost_of(held, "chunked");
  CHECK(composite.model_flops == tokens * width * (6 * state + 5));
  CHECK(composite.exponentials == tokens * width * (state + 2));
  CHECK(composite.minimal_bytes == tokens * (3 * width + 2 * state) * 4);
  CHECK(chunked.model_flops == composite.model_flops);
  CHECK(chunked.workspace_bytes < composite.workspace_bytes);
  const Cost fixed = cost_of(mamba(37, {{"selective", false}}), "chunked");
  CHECK(fixed.model_flops == tokens * width * (5 * state + 2));
  CHECK(fixed.minimal_bytes == tokens * 2 * width * 4);
  const Cost ranked = cost_of(mamba(37, {{"step_rank", count(3)}}), "chunked");
  CHECK(ranked.minimal_bytes == chunked.minimal_bytes - tokens * (width - 3) * 4);
  CHECK(ranked.model_flops == chunked.model_flops + tokens * width * 6);
}

}  // namespace attnbench
