#include "attention/layer.hpp"
#include "attention/registry.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

using namespace attnbench;

namespace {

Problem small(std::int64_t length, Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = 4;
  problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = 6;
  problem.value_dim = 5;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  return problem;
}

/// A mechanism with its inputs, mixed by any of its implementations.
struct Subject {
  const Entry& entry;
  std::shared_ptr<Mechanism> mechanism;
  Inputs inputs;

  Subject(const std::string& name, const Problem& problem,
          const std::map<std::string, OptionValue>& said = {})
      : entry(test::registry().entry(name)),
        mechanism(
            entry.make(entry.derive(Options::resolve(entry.options, said), problem), problem)),
        inputs(random_inputs(*mechanism, 11, 1.0, false)) {}
  at::Tensor mix(const std::string& implementation, State* state = nullptr) {
    return entry.implementation(implementation).mix(*mechanism, inputs, state).output;
  }
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

}  // namespace

TEST_CASE("softmax: a full state refuses more tokens, and a clone goes its own way") {
  Subject subject("softmax", small(4));
  State state = subject.mechanism->empty_state(2, 4, subject.inputs["query"].options());
  CHECK(state.bytes() == 2 * 2 * 4 * (6 + 5) * 8);
  subject.mix("tiled", &state);
  State copy = state.clone();
  copy["key"].zero_();
  CHECK(state["key"].abs().sum().item<double>() > 0);
  CHECK_THROWS_WITH(subject.mix("tiled", &state),
                    "softmax: the state has room for 4 tokens, not for 8");
}

TEST_CASE("softmax: costs follow the formulas") {
  const Entry& entry = test::registry().entry("softmax");
  const auto options = Options::resolve(entry.options, {});
  const Problem problem = small(100);
  const double pairs = 8 * 100 * 101 / 2;
  for (const auto& implementation : entry.implementations) {
    const Cost cost = implementation.cost(options, problem);
    CHECK(cost.model_flops == 2 * 11 * pairs);
    CHECK(cost.executed_flops >= cost.model_flops);
    CHECK(cost.minimal_bytes == 8 * (8 * 100 * 11 + 4 * 100 * 11));
    CHECK(cost.state_bytes == 8 * 4 * 100 * 11);
  }
}

TEST_CASE("window: limits are causal softmax, bidirectional softmax and the value itself") {
  for (const std::string implementation : {"composite", "chunked", "tiled"}) {
    INFO(implementation);
    Subject softmax("softmax", small(40));
    Subject causal("window", small(40), {{"window", Window{39, 0}}});
    CHECK(difference(causal.mix(implementation), softmax.mix("composite")) < 1e-12);
    const auto both = small(40, Pattern::bidirectional);
    Subject all("window", both, {{"window", Window{39, 39}}});
    CHECK(difference(all.mix(implementation), Subject("softmax", both).mix("composite")) < 1e-12);
    Subject self("window", small(40), {{"window", Window{0, 0}}});
    const auto v = self.inputs["value"].repeat_interleave(2, 1);
    CHECK(difference(self.mix(implementation), v) < 1e-14);
  }
}

TEST_CASE("longshort: a window over everything, before any slot is seen, is softmax attention") {
  const std::int64_t length = 20;
  Problem problem = small(length);
  problem.kv_heads = 4;
  Subject longshort("longshort", problem,
                    {{"segment", length},
                     {"projected_length", std::int64_t{3}},
                     {"window", Window{length - 1, 0}},
                     {"norm", std::string("none")}});
  Subject softmax("softmax", problem);
  for (auto& [role, tensor] : softmax.inputs.tensors) tensor = longshort.inputs[role];
  CHECK(difference(longshort.mix("composite"), softmax.mix("composite")) < 1e-12);
}
