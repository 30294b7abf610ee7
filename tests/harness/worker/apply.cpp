// attnbench apply in the worker: every mechanism of the registry, on arrays from files, against its
// definition.
#include "core/option_json.hpp"
#include "harness/worker/arrays.hpp"
#include "tests/harness/worker/apply_cases.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

/// Whether the options said can be seen in the shape of a role or a parameter.
bool visible(const ApplyCase& one) {
  const auto plain = apply_case(*one.entry, one.problem, {});
  if (!plain) return false;
  std::map<std::string, std::int64_t> widths;
  for (const Role& role : plain->mechanism->roles()) widths[role.name] = role.width;
  for (const Role& role : one.mechanism->roles()) {
    if (widths[role.name] != role.width || role.source == Source::latent_stream) return true;
  }
  std::map<std::string, arrays::Shape> shapes;
  for (const auto& [name, tensor] : parameters_of(*plain->mechanism)) {
    shapes[name] = tensor.sizes().vec();
  }
  for (const auto& [name, tensor] : parameters_of(*one.mechanism)) {
    if (shapes[name] != tensor.sizes().vec()) return true;
  }
  return false;
}

}  // namespace

// At other lengths the conformance kit holds what apply calls.
TEST_CASE("apply agrees with every definition", "[apply]") {
  for_each_case([](const ApplyCase& one) {
    const Inputs inputs = inputs_of(one);
    for (const Implementation& implementation : one.entry->implementations) {
      if (!implementation.supports(one.options, one.problem)) continue;
      INFO(one.where << " " << implementation.name);
      ApplyCall call(one, inputs);
      call.request["implementation"] = implementation.name;
      const Json answer = call.run();
      INFO(answer.dump());
      REQUIRE(answer.at("status") == "ok");
      CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
      CHECK(answer.at("check").at("error").get<double>() < 1e-10);
      const at::NoGradGuard no_grad;
      const at::Tensor latents = implementation.mix(*one.mechanism, inputs, nullptr).latents;
      const bool written = std::filesystem::exists(call.folder / "out" / "latents.npy");
      REQUIRE(written == latents.defined());
      if (written) CHECK(call.read("latents").allclose(latents, 1e-10, 1e-10));
      for (const auto& [name, tensor] : parameters_of(*one.mechanism)) {
        CHECK(call.read("parameters/" + name).equal(tensor));
      }
    }
  });
}

TEST_CASE("apply finds default_per_head sizes in the arrays, and takes parameters back",
          "[apply]") {
  int found = 0;
  for_each_case([&](const ApplyCase& one) {
    if (!visible(one)) return;
    INFO(one.where);
    const Inputs inputs = inputs_of(one);
    ApplyCall call(one, inputs);
    call.request["options"] = Json::object();
    call.request["seed"] = apply_seed + 1;
    for (const auto& [name, tensor] : parameters_of(*one.mechanism)) {
      call.request["parameters"][name] = call.put("parameter." + name, tensor);
    }
    const Json answer = call.run();
    INFO(answer.dump());
    REQUIRE(answer.at("status") == "ok");
    CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
    for (const auto& [name, value] : one.said) {
      CHECK(answer.at("options").at(name) == attnbench::to_json(value));
    }
    ++found;
  });
  CHECK(found > 0);
}

TEST_CASE("an array that contradicts an option is refused, naming both", "[apply]") {
  const Entry& latte = all_mechanisms().entry("latte");
  const auto one =
      apply_case(latte, apply_problem(Pattern::causal, 2), {{"latents_per_head", std::int64_t{7}}});
  ApplyCall call(*one, inputs_of(*one));
  call.request["options"]["latents_per_head"] = 8;
  const Json answer = call.run();
  CHECK(answer.at("refused") == true);
  CHECK_THAT(answer.at("reason").get<std::string>(),
             Catch::Contains("logits.npy") && Catch::Contains("[2, 2, 3, 7]") &&
                 Catch::Contains("expected [2, 2, 3, 8]") && Catch::Contains("latents_per_head=8"));
  CHECK(std::filesystem::is_empty(call.folder / "out"));
}

// That the gradients of a mix are slopes of the definition is held by the conformance kit.
TEST_CASE("apply writes the gradients of the mix, of inputs and parameters", "[apply]") {
  for_each_case([](const ApplyCase& one) {
    INFO(one.where);
    Problem problem = one.problem;
    problem.gradient = true;
    const auto mechanism = one.entry->make(one.options, problem);
    mechanism->draw_parameters(apply_seed);
    Inputs inputs = inputs_of(one);
    ApplyCall call(one, inputs);
    for (auto& [role, tensor] : inputs.tensors) tensor.requires_grad_(true);
    const at::Tensor output =
        one.entry->implementations.front().mix(*mechanism, inputs, nullptr).output;
    const at::Tensor upstream = at::randn_like(output);
    output.backward(upstream);
    call.request["gradient"] = call.put("gradient", upstream);
    const Json answer = call.run();
    INFO(answer.dump());
    REQUIRE(answer.at("status") == "ok");
    const auto hold = [&](const std::string& name, const at::Tensor& leaf) {
      INFO(name);
      const at::Tensor want = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
      CHECK(call.read("gradients/" + name).allclose(want, 1e-9, 1e-9));
    };
    for (const auto& [role, tensor] : inputs.tensors) hold(role, tensor);
    for (const auto& item : mechanism->named_parameters()) {
      hold("parameter." + item.key(), item.value());
    }
  });
}
