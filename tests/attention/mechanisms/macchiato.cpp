// Macchiato's macchiato_implementations against its definition, and its limits: a window, Latte,
// softmax.
#include <limits>

#include "attention/layer.hpp"
#include "attention/registry.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

constexpr double infinity = std::numeric_limits<double>::infinity();

Held macchiato(std::int64_t length, std::int64_t latents, std::int64_t width,
               Pattern pattern = Pattern::causal, Said said = {}) {
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

const Said turned{{"rotary", true}, {"vapor", true}, {"scale", 0.7}, {"logit_scale", 1.3}};

/// Another built-in mechanism on some of the inputs, under the names that it has for them.
at::Tensor other(const std::string& mechanism, const std::string& implementation, const Held& held,
                 const Said& said, const std::map<std::string, at::Tensor>& tensors) {
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

at::Tensor window_of(const Held& held, const std::string& mechanism,
                     const std::string& implementation, const Said& said = {}) {
  return other(mechanism, implementation, held, said,
               {{"query", held.inputs["local_query"]},
                {"key", held.inputs["local_key"]},
                {"value", held.inputs["value"]}});
}

}  // namespace

TEST_CASE("macchiato: every form equals the definition at odd sizes") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    for (const std::int64_t length : {1, 3, 67}) {
      for (const std::int64_t latents : {1, 7}) {
        for (const Said& said : {Said{}, turned}) {
          const Held held = macchiato(length, latents, 43, pattern, said);
          const at::Tensor expected = held.expected();
          for (const auto& name : macchiato_implementations(pattern)) {
            CAPTURE(to_string(pattern), length, latents, said.size(), name);
            CHECK(relative_error(held.output(name), expected) < 1e-12);
            CHECK(relative_error(held.output(name, at::kFloat), expected) < 2e-6);
          }
        }
      }
    }
  }
  const Held longer = macchiato(257, 7, 43);
  const at::Tensor expected = longer.expected();
  for (const auto& name : macchiato_implementations(Pattern::causal)) {
    CAPTURE(name);
    CHECK(relative_error(longer.output(name), expected) < 1e-12);
  }
}

TEST_CASE("macchiato: gradients are those of the definition, turned or not") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    for (const Said& said : {Said{}, turned}) {
      const Held held = macchiato(37, 3, 5, pattern, said);
      for (const auto& name : macchiato_implementations(pattern)) {
        CAPTURE(to_string(pattern), said.size());
        test::check_gradients(held, name);
      }
    }
  }
}

TEST_CASE("macchiato: all weight on state 0 is exactly the mechanism window") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Held held = macchiato(60, 7, 6, pattern);
    held.inputs.tensors["query_logits"].select(3, 0).fill_(1e4);
    const Said said{{"window", held.options.window("window")}};
    for (const auto& name : macchiato_implementations(pattern)) {
      CAPTURE(name, to_string(pattern));
      const std::string same = name == "composite" ? "composite" : "tiled";
      CHECK(at::equal(held.output(name), window_of(held, "window", same, said)));
    }
  }
}

TEST_CASE("macchiato: no weight on state 0 is exactly latte") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Held held = macchiato(60, 7, 6, pattern);
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
  const Said wide{{"window", Window{70, 0}}};
  Held held = macchiato(60, 7, 6, Pattern::causal, wide);
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

TEST_CASE("macchiato: steps and blocks equal the whole over 2000 tokens") {
  for (const Said& said : {Said{}, turned}) {
    const Held held = macchiato(2000, 3, 3, Pattern::causal, said);
    const at::Tensor whole = held.output("composite");
    for (const auto& name : macchiato_implementations(Pattern::causal)) {
      CAPTURE(name, said.size());
      if (name != "composite") CHECK(relative_error(held.output(name), whole) < 1e-12);
      State state = held.empty_state();
      const auto bytes = state.bytes();
      std::vector<at::Tensor> outputs;
      for (std::int64_t done = 0; done < 2000;) {
        const std::int64_t count = done == 0 ? 700 : done < 1800 ? 97 : done % 4 + 1;
        const std::int64_t end = std::min<std::int64_t>(2000, done + count);
        outputs.push_back(held.step(name, state, done, end));
        done = end;
      }
      CHECK(relative_error(at::cat(outputs, 2), whole) < 1e-12);
      CHECK(state.position == 2000);
      CHECK(state.bytes() == bytes);
    }
  }
}

TEST_CASE("macchiato: padded tokens are as if they were not there") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    const Held held = macchiato(40, 3, 5, pattern, turned);
    for (const auto& name : macchiato_implementations(pattern)) {
      test::check_padding(held, name, {2, 21, {"key_logits", "value", "local_key"}});
    }
  }
}

TEST_CASE("macchiato: what is known of its numbers without computing them") {
  const Held held = macchiato(50, 3, 5);
  for (const auto& name : macchiato_implementations(Pattern::causal)) {
    CAPTURE(name);
    Held shifted = held;
    shifted.inputs.tensors["value"] = held.inputs["value"] + 7;
    CHECK(relative_error(shifted.output(name), held.output(name) + 7) < 1e-12);
    const auto gradients = held.gradients(name);
    CHECK(gradients.at("query_logits").sum(3).abs().max().item<double>() < 1e-12);
    CHECK(gradients.at("key_logits").sum(2).abs().max().item<double>() < 1e-12);
    // Rotations see distances alone: all tokens moved by 100 give what they gave.
    const Held near = macchiato(50, 3, 6, Pattern::causal, turned);
    State state = near.empty_state();
    state.position = 100;
    // The rings hold nothing of the hundred tokens before: a mask hides them.
    state.tensors["key_mask"] = at::zeros({2, state["key"].size(2)}, at::kBool);
    CHECK(relative_error(near.step(name, state, 0, 50), near.output(name)) < 1e-11);
  }
}

TEST_CASE("macchiato: options are derived, and contradictions refused") {
  const Entry entry = test::registry().entry("macchiato");
  Problem problem;
  problem.heads = problem.kv_heads = 4;
  problem.head_dim = problem.value_dim = 8;
  const auto derived = [&](const Said& said) {
    return entry.derive(Options::resolve(entry.options, said), problem);
  };
  const Said paper{{"window_convention", std::string("paper_eq17")}};
  CHECK(derived({}).window("window") == Window{127, 0});
  CHECK(derived({}).integer("latents_per_head") == 8);
  CHECK(derived(paper).window("window") == Window{128, 0});
  CHECK(entry.derive(derived(paper), problem).window("window") == Window{128, 0});
  CHECK_THROWS_AS(derived({{"window", Window{4, 1}}}), UsageError);
  CHECK_THROWS_AS(derived({{"latents_total", std::int64_t{42}}}), UsageError);
  problem.pattern = Pattern::bidirectional;
  CHECK(derived({}).window("window") == Window{64, 63});
  CHECK(derived(paper).window("window") == Window{128, 128});
  problem.pattern = Pattern::cross;
  CHECK_FALSE(entry.supports(derived({}), problem));
}

TEST_CASE("macchiato: a layer's logits come from what `before` makes of the tokens") {
  const Entry entry = test::registry().entry("macchiato");
  Problem problem;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 45;
  problem.head_dim = problem.value_dim = 4;
  problem.dtype = Dtype::float64;
  problem.gradient = true;
  const at::Tensor x = at::randn({2, 45, 8}, at::kDouble);
  const std::map<std::string, std::size_t> counts{{"none", 0}, {"conv", 1}, {"rg_lru", 5}};
  for (const auto& [word, count] : counts) {
    CAPTURE(word);
    const Options options = entry.derive(
        Options::resolve(
            entry.options,
            {{"before", word}, {"window", Window{5, 0}}, {"latents_per_head", std::int64_t{3}}}),
        problem);
    const auto mechanism = entry.make(options, problem);
    CHECK(mechanism->parameters().size() == count);
    Layer layer(mechanism, entry.implementation("chunked"), Scope::layer, 3);
    const at::Tensor tokens = word == "none" ? x : mechanism->before(x, nullptr).detach();
    const Inputs inputs = layer.project(x, x);
    const auto weights = layer.named_parameters();
    const auto projected = [&](const at::Tensor& from, const char* role) {
      const at::Tensor y = at::matmul(from, weights[std::string("weight_") + role]);
      return y.view({2, 45, 2, -1}).transpose(1, 2);
    };
    for (const char* role : {"query_logits", "key_logits"}) {
      CHECK(relative_error(inputs[role], projected(tokens, role)) < 1e-14);
    }
    for (const char* role : {"value", "local_query", "local_key"}) {
      CHECK(relative_error(inputs[role], projected(x, role)) < 1e-14);
    }
    // Every parameter of what comes before has a part in the output.
    layer.forward(x, x).output.sum().backward();
    for (const auto& item : mechanism->named_parameters()) {
      CAPTURE(item.key());
      CHECK(item.value().grad().abs().max().item<double>() > 0);
    }
  }
}

}  // namespace attnbench
