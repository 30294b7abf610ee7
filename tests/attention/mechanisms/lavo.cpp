// What is known of LAVO, whatever computes it.
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

/// Two rows and two heads; biases are drawn, so that they count.
Fixture lavo(std::int64_t length, std::int64_t width, Overrides said) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  said.insert({"window", Window{6, 0}});
  said.insert({"chunk", count(21)});
  said.insert({"bases", count(7)});
  Fixture held("lavo", problem, said);
  if (held.parameters.count("relative_bias") != 0) {
    at::Tensor& bias = held.parameters["relative_bias"];
    bias = at::linspace(-1, 2, bias.size(0), at::kDouble).sin() * 2;
  }
  return held;
}

std::vector<std::string> causal_forms() { return {"composite", "chunked", "fused"}; }

}  // namespace

TEST_CASE("lavo's plain state is r numbers a head and a count") {
  const Fixture held = lavo(30, 5, {{"form", word("plain")}});
  CHECK(held.empty_state().bytes() == 2 * (2 * 7 * 8 + 8));
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
  // Orthonormal over all heads together, and not in a head alone.
  const Overrides full = {{"bases", count(3)}, {"basis", word("full")}};
  const at::Tensor split = lavo(4, 5, full).parameters.at("bases");
  CHECK(difference(at::matmul(split, split.transpose(1, 2)).sum(0)) < 1e-14);
  CHECK(difference(at::matmul(split, split.transpose(1, 2))) > 1e-2);
}

TEST_CASE("plain lavo knows of the past only its mean") {
  for (const auto& name : causal_forms()) {
    CAPTURE(name);
    Fixture held = lavo(40, 5, {{"form", word("plain")}});
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

TEST_CASE("undissected lavo is the mean of its window and of the plain form") {
  const Fixture held = lavo(40, 5, {{"form", word("undissected")}, {"relative_bias", false}});
  Fixture plain = lavo(40, 5, {{"form", word("plain")}});
  for (const char* role : {"query", "context"}) plain.inputs.tensors[role] = held.inputs[role];
  plain.parameters["bases"] = held.parameters.at("bases");
  const at::Tensor distance = at::arange(40).unsqueeze(0) - at::arange(40).unsqueeze(1);
  const at::Tensor scores =
      at::matmul(held.inputs["query"], held.inputs["key"].transpose(2, 3)) / std::sqrt(5.0);
  const at::Tensor hidden = scores.masked_fill(distance.gt(0).logical_or(distance.lt(-6)), -1e300);
  const at::Tensor local = at::matmul(at::softmax(hidden, -1), held.inputs["value"]);
  CHECK(relative_error(held.output("composite"), (local + plain.output("composite")) / 2) < 1e-12);
  // The window's keys and values, beside the plain form's state.
  CHECK(held.empty_state().bytes() == plain.empty_state().bytes() + 2 * 2 * 2 * 7 * 5 * 8);
}

TEST_CASE("within its first window lavo is half of softmax with a relative bias, or all of it") {
  for (const char* empty : {"half", "local"}) {
    const Fixture held = lavo(24, 5, {{"window", Window{23, 0}}, {"empty_global", word(empty)}});
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

TEST_CASE("lavo in pieces or in kernels takes the same memory for any length") {
  const auto peak = [](std::int64_t length, const char* form, const char* name) {
    const Fixture held = lavo(length, 8, {{"form", word(form)}, {"chunk", count(64)}});
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
