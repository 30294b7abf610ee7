// Linformer against its definition, and what must hold of it whatever computes it.
#include <limits>

#include "attention/layer.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Held;
using test::relative_error;
using test::Said;

Problem problem_of(std::int64_t length, std::int64_t width,
                   Pattern pattern = Pattern::bidirectional) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  if (pattern == Pattern::cross) problem.key_length = length + 9;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  return problem;
}

Held linformer(const Problem& problem, Said said) {
  said.insert({"projected_length", count(7)});
  return {"linformer", problem, said};
}

std::vector<Said> linformer_choices() {
  const OptionValue yes(true);
  return {{},
          {{"share_kv", yes}, {"init", OptionValue(std::string("lecun_normal"))}},
          {{"per_head", yes}, {"max_length", count(300)}, {"scale", OptionValue(0.7)}}};
}

std::vector<std::string> linformer_implementations() { return {"composite", "tiled"}; }

Support asked(const Said& said, const Problem& problem) {
  const Entry entry = test::registry().entry("linformer");
  return entry.supports(entry.derive(Options::resolve(entry.options, said), problem), problem);
}

}  // namespace

TEST_CASE("every form of linformer equals its definition") {
  for (const Said& said : linformer_choices()) {
    for (const auto& name : linformer_implementations()) {
      for (const std::int64_t length : {1, 3, 257}) {
        CAPTURE(name, length, said.size());
        const Held held = linformer(problem_of(length, 43), said);
        CHECK(relative_error(held.output(name), held.expected()) < 1e-12);
        CHECK(relative_error(held.output(name, at::kFloat), held.expected()) < 5e-6);
      }
    }
    Said single = said;
    single["projected_length"] = count(1);
    const Held held = linformer(problem_of(21, 5, Pattern::cross), single);
    CHECK(relative_error(held.output("composite"), held.expected()) < 1e-12);
  }
}

TEST_CASE("linformer's gradients are those of its definition, E and F included") {
  for (const Said& said : linformer_choices()) {
    for (const Pattern pattern : {Pattern::bidirectional, Pattern::cross}) {
      const Held held = linformer(problem_of(19, 5, pattern), said);
      for (const auto& name : linformer_implementations()) {
        CHECK(held.gradients(name).size() == (said.count("share_kv") != 0 ? 4 : 5));
        test::check_gradients(held, name, 1e-7);
      }
    }
  }
}

TEST_CASE("linformer whose projections are the identity is softmax, gradients too") {
  for (const auto& name : linformer_implementations()) {
    CAPTURE(name);
    Held held = linformer(problem_of(33, 5), {{"projected_length", count(33)}});
    for (auto& [role, matrix] : held.parameters) matrix = at::eye(33, at::kDouble);
    const Held softmax("softmax", held.problem);
    CHECK(relative_error(held.output(name), softmax.output("composite")) < 1e-12);
    const auto gradients = held.gradients(name);
    for (const auto& [role, gradient] : softmax.gradients("composite")) {
      CAPTURE(role);
      CHECK(relative_error(gradients.at(role), gradient) < 1e-12);
    }
  }
}

TEST_CASE("linformer whose projections average gives every query the mean value") {
  for (const auto& name : linformer_implementations()) {
    Held held = linformer(problem_of(40, 5), {});
    for (auto& [role, matrix] : held.parameters) matrix = at::full_like(matrix, 1.0 / 40);
    const at::Tensor mean = held.inputs["value"].mean(2, true);
    const at::Tensor output = held.output(name);
    CHECK(relative_error(output, mean.expand_as(output)) < 1e-12);
  }
}

TEST_CASE("linformer takes padding for zeros, and a longer matrix for its beginning") {
  for (const auto& name : linformer_implementations()) {
    CAPTURE(name);
    const Held whole = linformer(problem_of(40, 5), {});
    Held padded = whole;
    padded.inputs.key_mask = at::ones({2, 40}, at::kBool);
    padded.inputs.key_mask.slice(1, 25, 40).fill_(false);
    padded.inputs.key_mask[1].fill_(false);
    const at::Tensor expected = padded.expected();
    const auto clean = padded.gradients(name);
    // As if the rest had been cut off: E and F of the shorter problem begin alike.
    Held cut = linformer(problem_of(25, 5), {});
    for (auto& [role, tensor] : cut.inputs.tensors) tensor = whole.inputs[role].slice(2, 0, 25);
    CHECK(relative_error(cut.output(name)[0], padded.output(name)[0].slice(1, 0, 25)) < 1e-12);
    for (const char* role : {"key", "value"}) {
      at::Tensor& tensor = padded.inputs.tensors[role];
      tensor = tensor.clone();
      tensor.slice(2, 25, 40).fill_(std::numeric_limits<double>::quiet_NaN());
    }
    CHECK(relative_error(padded.output(name), expected) < 1e-12);
    CHECK(padded.output(name)[1].abs().max().item<double>() == 0);
    for (const auto& [role, gradient] : padded.gradients(name)) {
      CAPTURE(role);
      CHECK(relative_error(gradient, clean.at(role)) < 1e-12);
      if (gradient.dim() == 4) CHECK(gradient[1].abs().max().item<double>() == 0);
    }
  }
}

TEST_CASE("linformer's matrices are drawn as its sources draw them") {
  const auto drawn = [](const Said& said) {
    return linformer(problem_of(2000, 4), said).parameters;
  };
  const Said wide = {{"projected_length", count(64)}};
  const at::Tensor uniform = drawn(wide).at("E");
  CHECK(uniform.abs().max().item<double>() <= 1.0 / 8);
  CHECK(uniform.std().item<double>() == Approx(1.0 / 8 / std::sqrt(3.0)).epsilon(0.01));
  CHECK(relative_error(drawn(wide).at("F"), uniform) > 1);
  Said normal = wide;
  normal["init"] = OptionValue(std::string("lecun_normal"));
  normal["per_head"] = OptionValue(true);
  const at::Tensor lecun = drawn(normal).at("E");
  const double deviation = 1 / std::sqrt(2 * 2000.0);
  CHECK(lecun.sizes() == at::IntArrayRef({2, 64, 2000}));
  CHECK(lecun.std().item<double>() == Approx(deviation).epsilon(0.01));
  CHECK(lecun.abs().max().item<double>() <= 2 * deviation / 0.8796);
}

TEST_CASE("linformer says what it cannot do") {
  Problem problem = problem_of(40, 5);
  CHECK(asked({}, problem));
  CHECK(asked({{"max_length", count(40)}}, problem));
  CHECK_FALSE(asked({{"max_length", count(39)}}, problem));
  problem.pattern = Pattern::cross;
  CHECK(asked({}, problem));
  CHECK_FALSE(asked({{"l2_input", OptionValue(true)}}, problem));
  problem.pattern = Pattern::causal;
  CHECK_FALSE(asked({}, problem));
  CHECK_THROWS_AS(linformer(problem_of(4, 5), {}).empty_state(), UnsupportedError);
}

TEST_CASE("with l2_input linformer does not see how long a token is") {
  for (const bool scaled : {false, true}) {
    const Problem problem = problem_of(12, 4);
    const Entry entry = test::registry().entry("linformer");
    const Said said = {{"l2_input", OptionValue(scaled)}};
    const Options options = entry.derive(Options::resolve(entry.options, said), problem);
    Layer layer(entry.make(options, problem), entry.implementation("composite"), Scope::projected,
                1);
    const at::NoGradGuard no_grad;
    const at::Tensor x = at::randn({2, 12, 8});
    const at::Tensor longer = x * at::linspace(0.5, 3, 12).unsqueeze(-1);
    const at::Tensor same = layer.forward(x, x).output;
    const double difference = relative_error(layer.forward(longer, longer).output, same);
    CHECK((scaled ? difference < 1e-6 : difference > 1e-2));
  }
}

}  // namespace attnbench
