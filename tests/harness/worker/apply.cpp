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

void hold_to_definition(std::int64_t length) {
  for_each_case(length, [](const ApplyCase& one) {
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

}  // namespace

TEST_CASE("apply agrees with every definition at T = 1", "[apply]") { hold_to_definition(1); }
TEST_CASE("apply agrees with every definition at T = 3", "[apply]") { hold_to_definition(3); }
TEST_CASE("apply agrees with every definition at T = 257", "[apply]") { hold_to_definition(257); }

TEST_CASE("apply finds default_per_head sizes in the arrays, and takes parameters back",
          "[apply]") {
  int found = 0;
  for_each_case(3, [&](const ApplyCase& one) {
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
  const auto one = apply_case(latte, apply_problem(Pattern::causal, 3, 2),
                              {{"latents_per_head", std::int64_t{7}}});
  ApplyCall call(*one, inputs_of(*one));
  call.request["options"]["latents_per_head"] = 8;
  const Json answer = call.run();
  CHECK(answer.at("refused") == true);
  CHECK_THAT(answer.at("reason").get<std::string>(),
             Catch::Contains("logits.npy") && Catch::Contains("[2, 2, 3, 7]") &&
                 Catch::Contains("expected [2, 2, 3, 8]") && Catch::Contains("latents_per_head=8"));
  CHECK(std::filesystem::is_empty(call.folder / "out"));
}

TEST_CASE("apply hides masked tokens of every mechanism, whatever stands there", "[apply]") {
  for_each_case(3, [](const ApplyCase& one) {
    INFO(one.where);
    Inputs inputs = inputs_of(one);
    const Problem& problem = one.problem;
    inputs.key_mask = at::ones({problem.batch, problem.key_length}, at::kBool);
    inputs.key_mask[1][problem.key_length - 1].fill_(false);
    for (const Role& role : one.mechanism->roles()) {
      if (role.source != Source::key_tokens) continue;
      inputs.tensors[role.name][1].select(1, problem.key_length - 1).fill_(std::nan(""));
    }
    ApplyCall call(one, inputs);
    const Json answer = call.run();
    INFO(answer.dump());
    if (answer.at("status") == "unsupported") return;
    REQUIRE(answer.at("status") == "ok");
    CHECK(error_of(one, inputs, call.read("output")) < 1e-10);
  });
}
