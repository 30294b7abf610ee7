// What is known of Macchiato, whatever computes it, and its limits: a window, Latte, softmax.
#include <limits>

#include "attention/registry.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Fixture;
using test::Overrides;
using test::relative_error;

constexpr double infinity = std::numeric_limits<double>::infinity();

Fixture macchiato(std::int64_t length, std::int64_t latents, std::int64_t width,
                  Pattern pattern = Pattern::causal, Overrides said = {}) {
  Problem problem;
  problem.batch = problem.heads = 2;
  problem.length = length;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  problem.dtype = Dtype::float64;
  said.insert({"latents_per_head", latents});
  said.insert({"chunk", std::int64_t{16}});
  const std::int64_t right = pattern == Pattern::causal ? 0 : 4;
  said.insert({"window", Window{9, right}});
  return {"macchiato", problem, said};
}

std::vector<std::string> macchiato_implementations(Pattern pattern) {
  if (pattern == Pattern::causal) return {"composite", "scan", "chunked", "fused"};
  return {"composite", "chunked", "fused"};
}

/// Another built-in mechanism on some of the inputs, under the names that it has for them.
at::Tensor other(const std::string& mechanism, const std::string& implementation,
                 const Fixture& held, const Overrides& said,
                 const std::map<std::string, at::Tensor>& tensors) {
  const Entry& entry = test::registry().entry(mechanism);
  Problem problem = held.problem;
  problem.kv_heads = problem.heads;
  const auto made =
      entry.make(entry.derive(Options::resolve(entry.options, said), problem), problem);
  Inputs inputs;
  inputs.tensors = tensors;
  const at::NoGradGuard no_grad;
  return entry.implementation(implementation).mix(*made, inputs, nullptr).output;
}

at::Tensor window_of(const Fixture& held, const std::string& mechanism,
                     const std::string& implementation, const Overrides& said = {}) {
  return other(mechanism, implementation, held, said,
               {{"query", held.inputs["local_query"]},
                {"key", held.inputs["local_key"]},
                {"value", held.inputs["value"]}});
}

}  // namespace

TEST_CASE("macchiato: all weight on state 0 is exactly the mechanism window") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Fixture held = macchiato(60, 7, 6, pattern);
    held.inputs.tensors["query_logits"].select(3, 0).fill_(1e4);
    const Overrides said{{"window", held.options.window("window")}};
    for (const auto& name : macchiato_implementations(pattern)) {
      CAPTURE(name, to_string(pattern));
      const std::string same = name == "composite" ? "composite" : "tiled";
      CHECK(at::equal(held.output(name), window_of(held, "window", same, said)));
    }
  }
}

TEST_CASE("macchiato: no weight on state 0 is exactly latte") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Fixture held = macchiato(60, 7, 6, pattern);
    held.inputs.tensors["query_logits"].select(3, 0).fill_(-infinity);
    for (const auto& name : macchiato_implementations(pattern)) {
      CAPTURE(name, to_string(pattern));
      const std::string form = pattern == Pattern::causal ? name : "composite";
      const at::Tensor latte = other(
          "latte", form, held, {{"latents_per_head", std::int64_t{7}}, {"chunk", std::int64_t{16}}},
          {{"query_logits", held.inputs["query_logits"].slice(3, 1)},
           {"key_logits", held.inputs["key_logits"]},
           {"value", held.inputs["value"]}});
      CHECK(relative_error(held.output(name), latte) < 1e-15);
      // The window's inputs have no part in it, hence no gradient.
      const auto gradients = held.gradients(name);
      CHECK(gradients.at("local_query").abs().max().item<double>() == 0);
      CHECK(gradients.at("local_key").abs().max().item<double>() == 0);
      CHECK(gradients.at("query_logits").isfinite().all().item<bool>());
    }
  }
}

TEST_CASE("macchiato: a window of the whole sequence alone is causal softmax, as window's is") {
  const Overrides wide{{"window", Window{70, 0}}};
  Fixture held = macchiato(60, 7, 6, Pattern::causal, wide);
  held.inputs.tensors["query_logits"].select(3, 0).fill_(1e4);
  const at::Tensor softmax = window_of(held, "softmax", "composite");
  for (const auto& name : macchiato_implementations(Pattern::causal)) {
    CAPTURE(name);
    CHECK(relative_error(held.output(name), softmax) < 1e-14);
  }
  for (const char* name : {"composite", "chunked", "tiled"}) {
    CAPTURE(name);
    CHECK(relative_error(window_of(held, "window", name, wide), softmax) < 1e-14);
    CHECK(relative_error(window_of(held, "window", name, {{"window", Window{58, 0}}}), softmax) >
          1e-6);
  }
}

TEST_CASE("macchiato: what is known of its numbers without computing them") {
  const Fixture held = macchiato(50, 3, 5);
  for (const auto& name : macchiato_implementations(Pattern::causal)) {
    CAPTURE(name);
    const auto gradients = held.gradients(name);
    CHECK(gradients.at("query_logits").sum(3).abs().max().item<double>() < 1e-12);
    CHECK(gradients.at("key_logits").sum(2).abs().max().item<double>() < 1e-12);
    // Rotations see distances alone: all tokens moved by 100 give what they gave.
    const Fixture near = macchiato(50, 3, 6, Pattern::causal, {{"rotary", true}, {"vapor", true}});
    State state = near.empty_state();
    state.position = 100;
    // The rings hold nothing of the hundred tokens before: a mask hides them.
    state.tensors["key_mask"] = at::zeros({2, state["key"].size(2)}, at::kBool);
    CHECK(relative_error(near.step(name, state, 0, 50), near.output(name)) < 1e-11);
  }
}

}  // namespace attnbench
