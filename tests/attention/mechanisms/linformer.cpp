// What is known of Linformer, whatever computes it.
#include "attention/layer.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;

Problem problem_of(std::int64_t length, std::int64_t width) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = Pattern::bidirectional;
  return problem;
}

Fixture linformer(const Problem& problem, Overrides said) {
  said.insert({"projected_length", count(7)});
  return {"linformer", problem, said};
}

std::vector<std::string> linformer_implementations() { return {"composite", "tiled"}; }

}  // namespace

TEST_CASE("linformer whose projections are the identity is softmax, gradients too") {
  for (const auto& name : linformer_implementations()) {
    CAPTURE(name);
    Fixture held = linformer(problem_of(33, 5), {{"projected_length", count(33)}});
    for (auto& [role, matrix] : held.parameters) matrix = at::eye(33, at::kDouble);
    const Fixture softmax("softmax", held.problem);
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
    Fixture held = linformer(problem_of(40, 5), {});
    for (auto& [role, matrix] : held.parameters) matrix = at::full_like(matrix, 1.0 / 40);
    const at::Tensor mean = held.inputs["value"].mean(2, true);
    const at::Tensor output = held.output(name);
    CHECK(relative_error(output, mean.expand_as(output)) < 1e-12);
  }
}

TEST_CASE("linformer of a shorter sequence has the beginning of its matrices") {
  for (const auto& name : linformer_implementations()) {
    CAPTURE(name);
    // Zeros in the place of the rest: as if that had been cut off.
    Fixture whole = linformer(problem_of(40, 5), {});
    whole.inputs.key_mask = at::arange(40).lt(25).expand({2, 40});
    Fixture cut = linformer(problem_of(25, 5), {});
    for (auto& [role, tensor] : cut.inputs.tensors) tensor = whole.inputs[role].slice(2, 0, 25);
    CHECK(relative_error(cut.output(name), whole.output(name).slice(2, 0, 25)) < 1e-12);
  }
}

TEST_CASE("linformer's matrices are drawn as its sources draw them") {
  const auto drawn = [](const Overrides& said) {
    return linformer(problem_of(2000, 4), said).parameters;
  };
  const Overrides wide = {{"projected_length", count(64)}};
  const at::Tensor uniform = drawn(wide).at("E");
  CHECK(uniform.abs().max().item<double>() <= 1.0 / 8);
  CHECK(uniform.std().item<double>() == Approx(1.0 / 8 / std::sqrt(3.0)).epsilon(0.01));
  CHECK(relative_error(drawn(wide).at("F"), uniform) > 1);
  Overrides normal = wide;
  normal["init"] = OptionValue(std::string("lecun_normal"));
  normal["per_head"] = OptionValue(true);
  const at::Tensor lecun = drawn(normal).at("E");
  const double deviation = 1 / std::sqrt(2 * 2000.0);
  CHECK(lecun.sizes() == at::IntArrayRef({2, 64, 2000}));
  CHECK(lecun.std().item<double>() == Approx(deviation).epsilon(0.01));
  CHECK(lecun.abs().max().item<double>() <= 2 * deviation / 0.8796);
}

TEST_CASE("with l2_input linformer does not see how long a token is") {
  for (const bool scaled : {false, true}) {
    const Problem problem = problem_of(12, 4);
    const Entry entry = test::registry().entry("linformer");
    const Overrides said = {{"l2_input", OptionValue(scaled)}};
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
