// Luna's implementations against its definition, and what must hold of it whatever computes it.
#include <cmath>

#include "attention/layer.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/registry.hpp"

namespace attnbench {
namespace {

using test::Held;
using test::relative_error;
using test::Said;

Problem sized(std::int64_t length, std::int64_t width, Pattern pattern = Pattern::causal) {
  Problem problem;
  problem.batch = 2;
  problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = length;
  problem.head_dim = problem.value_dim = width;
  problem.pattern = pattern;
  problem.gradient = true;
  return problem;
}

Held luna(const Problem& problem, std::int64_t latents, Said said = {}) {
  said["latents_per_head"] = latents;
  if (said.count("chunk") == 0) said["chunk"] = std::int64_t{16};
  return {"luna", problem, said};
}

Held luna(std::int64_t length, std::int64_t latents, std::int64_t width,
          Pattern pattern = Pattern::causal) {
  return luna(sized(length, width, pattern), latents);
}

const std::vector<std::string> kForms = {"composite", "scan", "chunked", "fused"};
const std::vector<std::string> kWhole = {"composite", "fused"};

Mixed mixed(const Held& held, bool recorded = false) {
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::AutoGradMode record(recorded);
  return held.entry.implementation("composite").mix(*mechanism, held.inputs, nullptr);
}

at::Tensor scaled_softmax(const at::Tensor& q, const at::Tensor& k) {
  return at::softmax(at::matmul(q, k.transpose(-2, -1)) / std::sqrt(double(q.size(-1))), -1);
}

}  // namespace

TEST_CASE("every form of luna equals its definition") {
  for (const auto& form : kForms) {
    for (const std::int64_t length : {1, 3, 64, 65, 257}) {
      CAPTURE(length, form);
      const Held plain = luna(length, 7, length == 257 ? 11 : 43);
      const at::Tensor expected = plain.expected();
      CHECK(relative_error(plain.output(form), expected) < 1e-12);
      CHECK(relative_error(plain.output(form, at::kFloat), expected) < 2e-6);
      const Held single = luna(length, 1, 5);
      CHECK(relative_error(single.output(form), single.expected()) < 1e-12);
    }
    for (const char* activation : {"elu1", "latte_composed"}) {
      CAPTURE(activation, form);
      const Held other = luna(sized(40, 5), 3, {{"activation", std::string(activation)}});
      CHECK(relative_error(other.output(form), other.expected()) < 1e-12);
      CHECK(relative_error(other.output(form), luna(40, 3, 5).expected()) > 1e-2);
    }
    Problem wide = sized(40, 5);
    wide.value_dim = 9;
    const Held untied = luna(wide, 3, {{"tied", false}});
    CHECK(relative_error(untied.output(form), untied.expected()) < 1e-12);
  }
}

TEST_CASE("bidirectional and cross luna equal the definition, with fewer tokens than slots too") {
  for (const bool tied : {true, false}) {
    for (const bool dynamic : {true, false}) {
      for (const std::int64_t length : {1, 3, 65}) {
        CAPTURE(tied, dynamic, length);
        Problem problem = sized(length, 11, Pattern::bidirectional);
        if (!tied) problem.value_dim = 5;
        const Said said{{"tied", tied}, {"dynamic_slots", dynamic}};
        const Held both = luna(problem, 7, said);
        for (const auto& form : kWhole) {
          CHECK(relative_error(both.output(form), both.expected()) < 1e-12);
        }
        problem.pattern = Pattern::cross;
        problem.key_length = 4;
        const Held cross = luna(problem, 7, said);
        for (const auto& form : kWhole) {
          CHECK(relative_error(cross.output(form), cross.expected()) < 1e-12);
          CHECK(relative_error(cross.output(form, at::kFloat), cross.expected()) < 5e-6);
        }
      }
    }
  }
  // Of the causal pattern only.
  const Held composed =
      luna(sized(9, 5, Pattern::bidirectional), 3, {{"activation", std::string("latte_composed")}});
  const Held plain = luna(sized(9, 5, Pattern::bidirectional), 3);
  CHECK(relative_error(composed.output("composite"), plain.expected()) < 1e-12);
}

TEST_CASE("luna's gradients are those of its definition, parameters' included") {
  for (const auto& form : kForms) {
    test::check_gradients(luna(37, 3, 5), form, 1e-8);
    test::check_gradients(luna(sized(37, 5), 3, {{"tied", false}}), form, 1e-8);
    test::check_gradients(luna(sized(37, 5), 3, {{"activation", std::string("latte_composed")}}),
                          form, 1e-8);
  }
  const Held tied = luna(sized(37, 5, Pattern::bidirectional), 3);
  CHECK(tied.gradients("composite").count("parameter weight_unpack") == 1);
  for (const auto& form : kWhole) test::check_gradients(tied, form, 1e-8);
  const Held untied = luna(sized(3, 5, Pattern::bidirectional), 7, {{"tied", false}});
  CHECK(untied.gradients("composite").count("parameter weight_unpack_value") == 1);
  for (const auto& form : kWhole) test::check_gradients(untied, form, 1e-8);
}

TEST_CASE("luna's new latents are the pack, with its gradient") {
  Held held = luna(sized(23, 5, Pattern::bidirectional), 3);
  const auto pack = [](const Inputs& inputs) {
    const at::Tensor keys = inputs["pack_key"];
    return at::matmul(scaled_softmax(inputs["latent_query"], keys), keys)
        .transpose(1, 2)
        .flatten(2);
  };
  for (auto& [role, tensor] : held.inputs.tensors) tensor.requires_grad_(true);
  const at::Tensor stream = mixed(held, true).latents;
  CHECK(stream.sizes() == at::IntArrayRef({2, 3, 10}));
  CHECK(relative_error(stream, pack(held.inputs)) < 1e-12);
  const at::Tensor upstream = at::randn_like(stream);
  (stream * upstream).sum().backward();
  CHECK_FALSE(held.inputs["query"].grad().defined());
  for (const char* role : {"latent_query", "pack_key"}) {
    CAPTURE(role);
    const at::Tensor gradient = held.inputs[role].grad().clone();
    const at::Tensor direction = at::randn_like(gradient);
    const auto at_step = [&](double step) {
      Inputs moved = held.inputs;
      moved.tensors[role] = held.inputs[role].detach() + step * direction;
      return (pack(moved) * upstream).sum().item<double>();
    };
    const double slope = (at_step(1e-5) - at_step(-1e-5)) / 2e-5;
    CHECK((gradient * direction).sum().item<double>() == Approx(slope).epsilon(1e-6));
  }
  // The causal stream stays as it is: a pack of all tokens would tell of the future.
  CHECK_FALSE(mixed(luna(9, 3, 5)).latents.defined());
}

TEST_CASE("luna packing by the tokens themselves is softmax attention") {
  Held held = luna(sized(23, 5, Pattern::bidirectional), 23, {{"tied", false}});
  held.inputs.tensors["latent_query"] = held.inputs["query"];
  const at::Tensor attention = at::matmul(
      scaled_softmax(held.inputs["query"], held.inputs["pack_key"]), held.inputs["pack_value"]);
  CHECK(relative_error(mixed(held).latents, attention.transpose(1, 2).flatten(2)) < 1e-12);
}

TEST_CASE("luna with one slot gives every token the same, or the running mean of its weights") {
  const at::Tensor same = luna(23, 1, 5, Pattern::bidirectional).output("composite");
  CHECK(relative_error(same, same.narrow(2, 0, 1).expand_as(same)) < 1e-14);
  const Held held = luna(70, 1, 5);
  const at::Tensor scores =
      at::matmul(held.inputs["pack_key"], held.inputs["latent_query"].transpose(2, 3));
  const at::Tensor weights = at::log2(1 + at::exp2(scores / std::sqrt(5.0)));
  const at::Tensor counts = at::arange(1, 71, at::kDouble).view({70, 1});
  const at::Tensor expected = (weights * held.inputs["key"]).cumsum(2) / counts;
  for (const auto& form : kForms) {
    CHECK(relative_error(held.output(form), expected) < 1e-12);
  }
}

TEST_CASE("luna steps from a state as it runs over the whole, whatever ran before") {
  for (const bool tied : {true, false}) {
    CAPTURE(tied);
    test::check_steps(luna(sized(90, 5), 7, {{"tied", tied}}), kForms, {1, 15, 16, 50});
  }
}

TEST_CASE("luna's single steps over 2,000 tokens are the whole in double") {
  const Held held = luna(2000, 3, 5);
  State state = held.empty_state();
  const std::int64_t bytes = state.bytes();
  std::vector<at::Tensor> outputs;
  for (std::int64_t t = 0; t < 2000; ++t) {
    outputs.push_back(held.step("chunked", state, t, t + 1));
  }
  CHECK(relative_error(at::cat(outputs, 2), held.output("composite")) < 1e-12);
  CHECK(state.bytes() == bytes);
  // Tied: L D numbers and a count for each batch row and head.
  CHECK(bytes == 2 * 2 * (3 * 5 + 1) * 8);
}

TEST_CASE("padded tokens are not in luna's pack, nor counted") {
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    for (const auto& form : kForms) {
      if (pattern != Pattern::causal && form != "composite" && form != "fused") continue;
      for (const bool dynamic : {true, false}) {
        CAPTURE(dynamic);
        test::Padding padding{0, 36, {"pack_key"}};
        if (pattern == Pattern::causal) padding.in_second_only = {"key"};
        test::check_padding(luna(sized(40, 5, pattern), 7, {{"dynamic_slots", dynamic}}), form,
                            padding);
      }
    }
  }
}

TEST_CASE(
    "luna sums 16-bit inputs in 32, has 32 slots unless said, and refuses what is undefined") {
  for (const auto& form : kForms) {
    Held rounded = luna(300, 3, 5);
    for (auto& [role, tensor] : rounded.inputs.tensors) {
      tensor = tensor.to(at::kBFloat16).to(at::kDouble);
    }
    CHECK(relative_error(rounded.output(form, at::kBFloat16), rounded.expected()) < 4e-3);
    CHECK(rounded.empty_state(at::kBFloat16)["sum"].scalar_type() == at::kFloat);
  }
  const Entry entry = test::registry().entry("luna");
  Problem problem = sized(8, 4);
  const auto options = [&](const Said& said) {
    return entry.derive(Options::resolve(entry.options, said), problem);
  };
  CHECK(options({}).integer("latents_per_head") == 32);
  CHECK_THROWS_AS(options({{"activation", std::string("latte_composed")}, {"tied", false}}),
                  UsageError);
  problem.value_dim = 5;
  CHECK_THAT(entry.supports(options({}), problem).reason, Catch::Contains("value_dim"));
  CHECK(entry.supports(options({{"tied", false}}), problem));
  const Held both = luna(sized(8, 4, Pattern::bidirectional), 3);
  CHECK_THROWS_AS(both.empty_state(), UnsupportedError);
}

TEST_CASE("luna in a layer: tokens as they are under latte_composed, and seeded weights") {
  const Said said{{"latents_per_head", std::int64_t{3}},
                  {"activation", std::string("latte_composed")}};
  const Held held = luna(sized(6, 4), 3, said);
  Problem problem = held.problem;
  problem.dtype = Dtype::float64;
  const auto chosen = held.entry.implementation("chunked");
  Layer layer(held.entry.make(held.options, problem), chosen, Scope::layer, 1);
  const at::Tensor x = at::randn({2, 6, 8}, at::kDouble);
  const at::Tensor latents = at::randn({2, 3, 8}, at::kDouble);
  const Inputs inputs = layer.project(x, x, latents);
  CHECK(at::equal(inputs["key"], x.view({2, 6, 2, 4}).transpose(1, 2)));
  CHECK_FALSE(at::equal(inputs["query"], x.view({2, 6, 2, 4}).transpose(1, 2)));
  CHECK(layer.forward(x, x, {}, latents).output.sizes() == x.sizes());

  problem.pattern = Pattern::bidirectional;
  const auto mechanism = held.entry.make(held.options, problem);
  const at::Tensor first = mechanism->named_parameters()["weight_unpack"].detach().clone();
  mechanism->draw_parameters(5);
  CHECK_FALSE(at::equal(first, mechanism->named_parameters()["weight_unpack"]));
  mechanism->draw_parameters(0);
  CHECK(at::equal(first, mechanism->named_parameters()["weight_unpack"]));
}

}  // namespace attnbench
