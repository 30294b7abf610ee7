// What is known of linear attention's features, whatever computes them: their kernels, sizes,
// growth and what is refused.
#include <cmath>
#include <map>

#include "attention/torch/torch.hpp"

#include "tests/attention/fixture.hpp"
#include "tests/attention/memory_count.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;
using test::word;

const char* const kFeatures[] = {"elu1", "exp", "relu", "polynomial", "taylor2", "hedgehog"};

Fixture linear(const char* feature, std::int64_t length = 53, std::int64_t width = 6,
               Pattern pattern = Pattern::causal) {
  return {"linear",
          test::two_by_two(length, width, pattern),
          {{"feature", word(feature)}, {"chunk", count(16)}, {"epsilon", 0.0}}};
}

std::vector<std::string> forms_of(const Fixture& held) {
  std::vector<std::string> forms;
  for (const Implementation& form : held.entry.implementations) {
    if (form.supports(held.options, held.problem)) forms.push_back(form.name);
  }
  return forms;
}

/// The weights before they are divided by their sums, [B, H, T, S].
Tensor kernel_of(const std::string& feature, const Fixture& held) {
  const Tensor q = held.inputs["query"], k = held.inputs["key"];
  const auto product = [](const Tensor& a, const Tensor& b) {
    return at::matmul(a, b.transpose(-2, -1));
  };
  if (feature == "elu1") return product(at::elu(q) + 1, at::elu(k) + 1);
  if (feature == "exp") return product(q.exp(), k.exp());
  if (feature == "relu") return product(at::relu(q), at::relu(k));
  if (feature == "polynomial") return product(q, k).square();
  if (feature == "taylor2") {
    const Tensor z = product(q, k) / std::sqrt(static_cast<double>(q.size(-1)));
    return 1 + z + z.square() / 2;
  }
  const auto mapped = [&](const Tensor& x, const char* map) {
    return at::einsum("hij,bhtj->bhti", {held.parameters.at(map), x});
  };
  const Tensor a = mapped(q, "query_map"), b = mapped(k, "key_map");
  return product(at::softmax(a, -1), at::softmax(b, -1)) +
         product(at::softmax(-a, -1), at::softmax(-b, -1));
}

Options options_of(const Overrides& said, const Problem& problem) {
  const Entry& entry = test::registry().entry("linear");
  return entry.derive(Options::resolve(entry.options, said), problem);
}

Problem sized(std::int64_t head_dim, std::int64_t length = 64) {
  Problem problem;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = head_dim;
  return problem;
}

}  // namespace

TEST_CASE("linear: each feature's weights are its kernel's", "[linear]") {
  for (const Pattern pattern : {Pattern::causal, Pattern::cross}) {
    for (const char* feature : kFeatures) {
      Fixture held = linear(feature, 53, 6, pattern);
      for (auto& [name, map] : held.parameters) map = at::randn_like(map);
      Tensor weights = kernel_of(feature, held);
      if (pattern == Pattern::causal) weights = weights.tril();
      const Tensor total = weights.sum(-1, true);
      const Tensor want =
          at::matmul(weights, held.inputs["value"]) / total.masked_fill(total == 0, 1);
      for (const std::string& form : forms_of(held)) {
        CAPTURE(to_string(pattern), feature, form);
        CHECK(relative_error(held.output(form), want) < 1e-11);
        CHECK(relative_error(held.output(form, at::kBFloat16), want) < 0.05);
      }
    }
  }
}

TEST_CASE("linear: exponential features do not overflow", "[linear]") {
  for (const char* feature : {"exp", "hedgehog"}) {
    Fixture held = linear(feature);
    for (const char* role : {"query", "key"}) held.inputs.tensors[role] = held.inputs[role] * 400;
    for (const std::string& form : forms_of(held)) {
      CAPTURE(feature, form);
      CHECK(at::isfinite(held.output(form, at::kFloat)).all().item<bool>());
      for (const auto& [name, gradient] : held.gradients(form, at::kFloat)) {
        CAPTURE(name);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

TEST_CASE("linear: the state has the features' numbers, and its cost says so", "[linear]") {
  const std::map<std::string, std::int64_t> rows{{"elu1", 8 * 13},     {"exp", 8 * 14},
                                                 {"relu", 8 * 13},     {"polynomial", 36 * 13},
                                                 {"taylor2", 45 * 13}, {"hedgehog", 16 * 14}};
  for (const auto& [feature, numbers] : rows) {
    CAPTURE(feature);
    Problem problem = sized(8);
    problem.value_dim = 12;
    problem.heads = problem.kv_heads = 3;
    const Entry& entry = test::registry().entry("linear");
    const Options options = options_of({{"feature", feature}}, problem);
    const State state = entry.make(options, problem)->empty_state(1, 64, at::kFloat);
    CHECK(state.bytes() == 3 * 4 * numbers);
    for (const Implementation& form : entry.implementations) {
      CHECK(form.cost(options, problem).state_bytes == static_cast<double>(3 * 4 * numbers));
    }
  }
}

TEST_CASE("linear: growth is claimed by the number of features", "[linear]") {
  const Entry& entry = test::registry().entry("linear");
  for (const Implementation& form : entry.implementations) {
    CAPTURE(form.name);
    const auto growth = [&](const char* feature) {
      return form.growth_with(options_of({{"feature", word(feature)}}, sized(16)));
    };
    CHECK(growth("elu1").time_in_head_dim == form.growth.time_in_head_dim);
    CHECK(growth("elu1").workspace_in_length == form.growth.workspace_in_length);
    CHECK(growth("exp").time_in_head_dim == 2);
    CHECK(growth("taylor2").time_in_head_dim == 3);
    CHECK(growth("polynomial").time_in_head_dim == 3);
    CHECK(growth("hedgehog").workspace_in_length == 1);
    // What is claimed follows from what is counted, where the features are most of it.
    const auto flops = [&](std::int64_t width) {
      const Problem problem = sized(width);
      const Options options =
          options_of({{"feature", word("taylor2")}, {"chunk", count(1)}}, problem);
      return form.cost(options, problem).executed_flops;
    };
    CHECK(std::log2(flops(64) / flops(32)) == Approx(3).margin(0.15));
  }
}

TEST_CASE("linear: scan, chunks and kernel make their features as they go", "[linear]") {
  for (const char* feature : {"relu", "polynomial", "taylor2"}) {
    for (const std::string name : {"scan", "chunked", "fused"}) {
      const auto workspace = [&](std::int64_t length) {
        Problem problem = sized(8, length);
        problem.gradient = true;
        const auto& entry = test::registry().entry("linear");
        const Options options = options_of({{"feature", word(feature)}}, problem);
        const auto mechanism = entry.make(options, problem);
        Inputs inputs;
        for (const char* role : {"query", "key", "value"}) {
          inputs.tensors[role] = at::randn({1, 1, length, 8}).requires_grad_(true);
        }
        const auto& form = entry.implementation(name);
        const test::MemoryCount memory;
        const Tensor y = form.mix(*mechanism, inputs, nullptr).output;
        const auto output = static_cast<std::int64_t>(y.nbytes());
        CHECK(memory.live() - output < 1024);
        const double predicted = form.cost(options, problem).workspace_bytes;
        const auto taken = static_cast<double>(memory.peak() - output);
        CAPTURE(feature, name, taken, predicted);
        CHECK(taken < 1.5 * predicted);
        CHECK(taken > 0.4 * predicted);
        return taken;
      };
      CHECK(workspace(2048) == workspace(4096));
    }
  }
}

TEST_CASE("linear: what a feature does not have is refused with its reason", "[linear]") {
  const Entry& entry = test::registry().entry("linear");
  for (const char* feature : {"polynomial", "taylor2"}) {
    CAPTURE(feature);
    const Options options = options_of({{"feature", word(feature)}}, sized(64));
    CHECK(entry.supports(options, sized(64)));
    CHECK_THAT(entry.supports(options, sized(66)).reason,
               Catch::Contains(feature) && Catch::Contains("at most 2145"));
  }
  CHECK(entry.supports(options_of({}, sized(500)), sized(500)));
  for (const char* feature : {"exp", "hedgehog"}) {
    CAPTURE(feature);
    CHECK(options_of({{"feature", word(feature)}}, sized(8)).number("epsilon") == 0);
    CHECK_THROWS_WITH(options_of({{"feature", word(feature)}, {"epsilon", 1e-3}}, sized(8)),
                      Catch::Contains("has no epsilon"));
  }
  CHECK_THROWS_AS(options_of({{"feature", word("elu2")}}, sized(8)), UsageError);
  Problem both = sized(8);
  both.pattern = Pattern::bidirectional;
  const Implementation& fused = entry.implementation("fused");
  for (const char* feature : kFeatures) {
    const Support answer = fused.supports(options_of({{"feature", word(feature)}}, both), both);
    const bool exponential = feature == std::string("exp") || feature == std::string("hedgehog");
    CHECK(answer.yes == exponential);
    CHECK((exponential || answer.reason.find("causal") != std::string::npos));
  }
}

}  // namespace attnbench
