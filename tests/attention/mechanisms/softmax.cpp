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
          const std::map<std::string, OptionValue>& said = {}, bool gradient = false)
      : entry(test::registry().entry(name)),
        mechanism(
            entry.make(entry.derive(Options::resolve(entry.options, said), problem), problem)),
        inputs(random_inputs(*mechanism, 11, 1.0, gradient)) {}
  at::Tensor mix(const std::string& implementation, State* state = nullptr) {
    return entry.implementation(implementation).mix(*mechanism, inputs, state).output;
  }
  Inputs tokens(std::int64_t begin, std::int64_t count) const {
    Inputs part;
    for (const auto& [name, tensor] : inputs.tensors) {
      part.tensors[name] = tensor.narrow(2, begin, count);
    }
    if (inputs.key_mask.defined()) part.key_mask = inputs.key_mask.narrow(1, begin, count);
    return part;
  }
};

double difference(const at::Tensor& a, const at::Tensor& b) {
  return ((a - b).norm() / b.norm()).item<double>();
}

/// Prefill of 5 tokens, a block of 3, then single tokens, against the whole sequence at once.
void continues(const std::string& name, const std::map<std::string, OptionValue>& said,
               bool padded) {
  Subject subject(name, small(19), said);
  if (padded) subject.inputs.key_mask = at::rand({2, 19}) > 0.3;
  const auto whole = subject.mix("composite");
  for (const auto& implementation : subject.entry.implementations) {
    if (!implementation.supports(subject.mechanism->options, subject.mechanism->problem)) continue;
    State state = subject.mechanism->empty_state(2, 19, subject.inputs["query"].options());
    std::vector<at::Tensor> parts;
    for (std::int64_t begin = 0, count = 5; begin < 19; begin += count, count = begin < 8 ? 3 : 1) {
      const Inputs tokens = subject.tokens(begin, count);
      parts.push_back(implementation.mix(*subject.mechanism, tokens, &state).output);
    }
    INFO(name << "/" << implementation.name << (padded ? " padded" : ""));
    CHECK(state.position == 19);
    CHECK(difference(at::cat(parts, 2), whole) < 1e-12);
  }
}

}  // namespace

TEST_CASE("softmax: a state continues a sequence whatever the implementation") {
  continues("softmax", {}, false);
  continues("softmax", {}, true);
}

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

TEST_CASE("softmax: the numbers do not depend on the chunks") {
  for (const std::int64_t chunk : {1, 7, 16, 100}) {
    Subject subject("softmax", small(33), {{"query_chunk", chunk}, {"key_chunk", chunk / 2 + 1}},
                    true);
    CHECK(difference(subject.mix("chunked"), subject.mix("composite")) < 1e-13);
  }
}

TEST_CASE("softmax: gradients of all implementations agree, rows without keys included") {
  for (const bool padded : {false, true}) {
    std::map<std::string, std::vector<at::Tensor>> gradients;
    for (const std::string implementation : {"composite", "chunked", "tiled"}) {
      Subject subject("softmax", small(21), {{"query_chunk", std::int64_t{8}}}, true);
      if (padded) {
        subject.inputs.key_mask = at::ones({2, 21}, at::kBool);
        subject.inputs.key_mask.narrow(1, 0, 4).fill_(false);
      }
      const auto output = subject.mix(implementation);
      if (padded) CHECK(output.narrow(2, 0, 4).abs().max().item<double>() == 0);
      (output * at::arange(5, at::kDouble)).sin().sum().backward();
      for (const char* role : {"query", "key", "value"}) {
        gradients[implementation].push_back(subject.inputs[role].grad());
      }
    }
    for (std::size_t i = 0; i < 3; ++i) {
      const auto& expected = gradients["composite"][i];
      CHECK(at::isfinite(expected).all().item<bool>());
      CHECK(difference(gradients["chunked"][i], expected) < 1e-12);
      CHECK(difference(gradients["tiled"][i], expected) < 1e-12);
    }
  }
}

TEST_CASE("softmax: aliases, and the choice by dtype") {
  const auto flash = test::registry().resolve("flash");
  CHECK(flash.entry->name == "softmax");
  CHECK(flash.implementation == "tiled");
  CHECK(test::registry().resolve("chunked_softmax").implementation == "chunked");
  const Entry& entry = test::registry().entry("softmax");
  const auto options = Options::resolve(entry.options, {});
  CHECK(Registry::choose(entry, "auto", options, small(8)).implementation->name == "tiled");
  Problem half = small(8);
  half.dtype = Dtype::float16;
  CHECK_THROWS_WITH(Registry::choose(entry, "tiled", options, half),
                    "softmax/tiled: float16 has no CPU kernel");
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

TEST_CASE("window: its ring continues a sequence whatever the implementation") {
  for (const std::int64_t left : {0, 1, 3, 7, 30}) {
    continues("window", {{"window", Window{left, 0}}}, false);
    continues("window", {{"window", Window{left, 0}}}, true);
  }
  Subject subject("window", small(19), {{"window", Window{3, 0}}});
  CHECK(subject.mechanism->empty_state(2, 19, subject.inputs["query"].options()).bytes() ==
        2 * 2 * 4 * (6 + 5) * 8);
}

TEST_CASE("window: 128 keys unless said, on both sides where it is bidirectional") {
  const Entry& entry = test::registry().entry("window");
  const auto unsaid = Options::resolve(entry.options, {});
  CHECK(entry.derive(unsaid, small(8)).window("window") == Window{127, 0});
  CHECK(entry.derive(unsaid, small(8, Pattern::bidirectional)).window("window") == Window{64, 63});
  const auto ahead = Options::resolve(entry.options, {{"window", Window{3, 1}}});
  CHECK_THROWS_WITH(entry.derive(ahead, small(8)),
                    "window: a causal window must have right 0, not 1");
  CHECK_THROWS_WITH(Registry::choose(entry, "auto", entry.derive(unsaid, small(8, Pattern::cross)),
                                     small(8, Pattern::cross)),
                    "window: cross is undefined, a window needs queries and keys of one sequence");
}
