// LAVO's implementations against its definition, and what must hold of it whatever computes it.

#include "attention/conformance/conformance.hpp"
#include "tests/attention/held.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Held;
using test::relative_error;
using test::Said;
using test::word;

/// Two rows and two heads; biases are drawn, so that they count.
Held lavo(std::int64_t length, std::int64_t width, Said said, Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = problem.key_length = length;
  if (pattern == Pattern::cross) problem.key_length = length + 9;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  const bool causal = pattern == Pattern::causal;
  said.insert({"window", causal ? Window{6, 0} : Window{6, 4}});
  said.insert({"chunk", count(21)});
  said.insert({"bases", count(7)});
  Held held("lavo", problem, said);
  if (held.parameters.count("relative_bias") != 0) {
    at::Tensor& bias = held.parameters["relative_bias"];
    bias = at::linspace(-1, 2, bias.size(0), at::kDouble).sin() * 2;
  }
  return held;
}

/// The lavo_choices that change what is computed.
std::vector<Said> lavo_choices() {
  return {{{"form", word("dissected")}},
          {{"form", word("plain")}},
          {{"empty_global", word("local")}, {"relative_bias", OptionValue(false)}},
          {{"basis", word("full")}, {"scale", OptionValue(0.7)}}};
}

std::vector<std::string> causal_forms() { return {"composite", "chunked", "fused"}; }

}  // namespace

TEST_CASE("every form of lavo equals its definition") {
  for (const Said& said : lavo_choices()) {
    for (const auto& name : causal_forms()) {
      for (const std::int64_t length : {1, 3, 6, 7, 8, 20, 65}) {
        CAPTURE(name, length, said.size());
        const Held held = lavo(length, 43, said);
        CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
        CHECK(relative_error(held.output(name, at::kFloat), held.expected()) < 3e-6);
      }
    }
  }
  for (const std::int64_t bases : {1, 7, 50}) {
    // A window of the chunk's size, a wider one, and one that is a single token.
    for (const std::int64_t left : {20, 60, 0}) {
      CAPTURE(bases, left);
      const Held held = lavo(257, 5, {{"bases", count(bases)}, {"window", Window{left, 0}}});
      for (const auto& name : causal_forms()) {
        CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
      }
    }
  }
}

TEST_CASE("bidirectional and cross lavo equal the definition") {
  for (const Said& said : lavo_choices()) {
    for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
      CAPTURE(to_string(pattern), said.size());
      const Held held = lavo(38, 5, said, pattern);
      for (const char* name : {"composite", "fused"}) {
        CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
        test::check_gradients(held, name, 1e-7);
      }
    }
  }
}

TEST_CASE("lavo's gradients are those of its definition, bases and biases included") {
  for (const Said& said : lavo_choices()) {
    for (const auto& name : causal_forms()) test::check_gradients(lavo(38, 5, said), name, 1e-7);
  }
  test::check_gradients(lavo(38, 5, {{"window", Window{30, 0}}}), "chunked", 1e-7);
  const Held held = lavo(38, 5, {});
  const auto whole = held.gradients("composite");
  for (const char* name : {"chunked", "fused"}) {
    for (const auto& [role, gradient] : held.gradients(name)) {
      CAPTURE(name, role);
      CHECK(relative_error(gradient, whole.at(role)) < 1e-12);
    }
  }
}

TEST_CASE("the properties of the kit hold for lavo's other forms, too") {
  const Entry entry = test::registry().entry("lavo");
  const std::vector<Said> others = {{{"form", word("plain")}},
                                    {{"empty_global", word("local")}, {"basis", word("full")}}};
  for (const Said& said : others) {
    conformance::CheckOptions options;
    options.options = said;
    for (const char* name : {"chunked", "fused"}) {
      for (const auto& finding :
           conformance::check(entry, test::registry().reference("lavo"), entry.implementation(name),
                              Pattern::causal, Dtype::float64, options)) {
        CAPTURE(name, finding.property, finding.reason);
        CHECK(finding.status != conformance::Status::broken);
      }
    }
  }
}

TEST_CASE("lavo steps from a state as it runs over the whole, whatever ran before") {
  for (const Said& said : lavo_choices()) {
    Held held = lavo(60, 5, said);
    for (const bool padded : {false, true}) {
      if (padded) {
        held.inputs.key_mask = at::ones({2, 60}, at::kBool);
        held.inputs.key_mask[0].slice(0, 12, 31).fill_(false);
      }
      CAPTURE(padded);
      test::check_steps(held, causal_forms(), {1, 7, 33});
    }
  }
}

TEST_CASE("two thousand single steps of lavo are the whole sequence") {
  for (const char* form : {"dissected", "plain"}) {
    const Held held = lavo(2000, 3, {{"form", word(form)}});
    State state = held.empty_state();
    const std::int64_t bytes = state.bytes();
    std::vector<at::Tensor> outputs;
    for (std::int64_t t = 0; t < 2000; ++t) {
      outputs.push_back(held.step(t % 2 == 0 ? "chunked" : "fused", state, t, t + 1));
    }
    CHECK(relative_error(at::cat(outputs, 2), held.expected()) < 1e-12);
    CHECK(state.bytes() == bytes);
  }
}

TEST_CASE("lavo's plain state is r numbers a head and a count") {
  const Held held = lavo(30, 5, {{"form", word("plain")}});
  CHECK(held.empty_state().bytes() == 2 * (2 * 7 * 8 + 8));
  CHECK(held.empty_state(at::kBFloat16)["memory"].scalar_type() == at::kFloat);
  CHECK_THROWS_AS(lavo(30, 5, {}, Pattern::bidirectional).empty_state(), UnsupportedError);
}

TEST_CASE("padded tokens are neither seen nor remembered") {
  for (const Said& said : lavo_choices()) {
    for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional, Pattern::cross}) {
      for (const auto& name : causal_forms()) {
        if (name == "chunked" && pattern != Pattern::causal) continue;
        CAPTURE(said.size());
        const Held held = lavo(31, 5, said, pattern);
        test::Padding padding{0, 15, {}};
        for (const auto& [role, tensor] : held.inputs.tensors) {
          if (role != "query") padding.roles.push_back(role);
        }
        test::check_padding(held, name, padding);
      }
    }
  }
}

TEST_CASE("lavo's bases are orthonormal at first") {
  const auto difference = [](const at::Tensor& product) {
    return (product - at::eye(product.size(-1), at::kDouble)).abs().max().item<double>();
  };
  for (const std::int64_t rows : {1, 3, 5}) {
    const at::Tensor bases = lavo(4, 5, {{"bases", count(rows)}}).parameters.at("bases");
    CHECK(difference(at::matmul(bases, bases.transpose(1, 2))) < 1e-14);
  }
  const at::Tensor many = lavo(4, 5, {{"bases", count(9)}}).parameters.at("bases");
  CHECK(difference(at::matmul(many.transpose(1, 2), many)) < 1e-14);
  // Of all heads together: not so in a head alone.
  const Said full = {{"bases", count(3)}, {"basis", word("full")}};
  const at::Tensor split = lavo(4, 5, full).parameters.at("bases");
  CHECK(difference(at::matmul(split, split.transpose(1, 2)).sum(0)) < 1e-14);
  CHECK(difference(at::matmul(split, split.transpose(1, 2))) > 1e-2);
}

TEST_CASE("plain lavo knows of the past only its mean") {
  for (const auto& name : causal_forms()) {
    CAPTURE(name);
    Held held = lavo(40, 5, {{"form", word("plain")}});
    const at::Tensor before = held.output(name);
    at::Tensor& context = held.inputs.tensors["context"];
    context = at::cat({context.slice(2, 0, 30).flip(2), context.slice(2, 30, 40)}, 2);
    const at::Tensor after = held.output(name);
    CHECK(relative_error(after.slice(2, 29, 40), before.slice(2, 29, 40)) < 1e-12);
    CHECK(relative_error(after.slice(2, 0, 29), before.slice(2, 0, 29)) > 1e-2);
    // A constant context and query: a constant output.
    for (auto& [role, tensor] : held.inputs.tensors) {
      tensor = tensor.select(2, 0).unsqueeze(2).expand_as(tensor).contiguous();
    }
    const at::Tensor constant = held.output(name);
    CHECK(relative_error(constant, constant.select(2, 0).unsqueeze(2).expand_as(constant)) < 1e-12);
  }
}

TEST_CASE("within its first window lavo is half of softmax with a relative bias, or all of it") {
  for (const char* empty : {"half", "local"}) {
    const Held held = lavo(24, 5, {{"window", Window{23, 0}}, {"empty_global", word(empty)}});
    const at::Tensor bias = held.parameters.at("relative_bias");
    const at::Tensor tokens = at::arange(24, at::kLong);
    const at::Tensor distance = tokens.unsqueeze(0) - tokens.unsqueeze(1);
    const at::Tensor scores =
        at::matmul(held.inputs["query"], held.inputs["key"].transpose(2, 3)) / std::sqrt(5.0) +
        bias.index_select(0, (distance + 23).flatten()).view({24, 24});
    const at::Tensor hidden = scores.masked_fill(distance > 0, -1e300);
    const at::Tensor softmax = at::matmul(at::softmax(hidden, -1), held.inputs["value"]);
    for (const auto& name : causal_forms()) {
      CAPTURE(name, empty);
      const double factor = std::string(empty) == "half" ? 0.5 : 1;
      CHECK(relative_error(held.output(name), factor * softmax) < 1e-12);
    }
  }
}

TEST_CASE("lavo says what it cannot do") {
  const Entry entry = test::registry().entry("lavo");
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.head_dim = problem.value_dim = 8;
  const Options options = entry.derive(Options::resolve(entry.options, {}), problem);
  CHECK(entry.supports(options, problem));
  problem.value_dim = 4;
  CHECK_THAT(entry.supports(options, problem).reason, Catch::Contains("set value_dim to head_dim"));
  problem.value_dim = 8;
  problem.kv_heads = 2;
  CHECK_FALSE(entry.supports(options, problem));
  CHECK_THROWS_AS(lavo(4, 5, {{"window", Window{3, 2}}}), UsageError);
  problem.pattern = Pattern::cross;
  CHECK(entry.derive(Options::resolve(entry.options, {}), problem).text("form") == "plain");
}

TEST_CASE("lavo in pieces or in kernels takes the same memory for any length") {
  const auto peak = [](std::int64_t length, const char* form, const char* name) {
    const Held held = lavo(length, 8, {{"form", word(form)}, {"chunk", count(64)}});
    Problem problem = held.problem;
    const auto mechanism = held.entry.make(held.options, problem);
    Inputs inputs;
    for (const auto& [role, tensor] : held.inputs.tensors) {
      inputs.tensors[role] = tensor.to(at::kFloat);
    }
    const at::NoGradGuard no_grad;
    const test::MemoryCount memory;
    const auto output = held.entry.implementation(name).mix(*mechanism, inputs, nullptr).output;
    return memory.peak() - static_cast<std::int64_t>(output.nbytes());
  };
  for (const char* form : {"dissected", "plain"}) {
    for (const char* name : {"chunked", "fused"}) {
      const auto small = static_cast<double>(peak(1000, form, name));
      CHECK(static_cast<double>(peak(8000, form, name)) < 1.02 * small);
    }
  }
}

}  // namespace attnbench
