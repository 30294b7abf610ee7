#include "attention/torch/autocast.hpp"

#include "attention/layer.hpp"
#include "attention/registry.hpp"
#include "core/tolerance.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using test::relative_error;

namespace {

at::Tensor some(std::vector<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape) count *= size;
  return at::sin(at::arange(count, at::kFloat)).view(shape);
}

Problem small(Pattern pattern) {
  Problem problem;
  problem.batch = problem.heads = problem.kv_heads = 2;
  problem.length = problem.key_length = 37;
  if (pattern == Pattern::cross) problem.key_length = 29;
  problem.head_dim = problem.value_dim = 16;
  problem.pattern = pattern;
  problem.gradient = true;
  return problem;
}

struct Mixture {
  at::Tensor output;
  std::map<std::string, at::Tensor> gradients;  ///< of roles and of parameters
};

Mixture mixed(const Implementation& implementation, Mechanism& mechanism, const Inputs& inputs,
              at::ScalarType type) {
  Inputs leaves;
  for (const auto& [role, tensor] : inputs.tensors) {
    leaves.tensors[role] = tensor.detach().clone().to(type).requires_grad_(true);
  }
  for (auto& parameter : mechanism.parameters()) parameter.mutable_grad().reset();
  Mixture mixture;
  mixture.output = implementation.mix(mechanism, leaves, nullptr).output;
  mixture.output.backward(some(mixture.output.sizes().vec()).to(mixture.output.scalar_type()));
  const auto take = [&](const std::string& name, const at::Tensor& leaf) {
    mixture.gradients[name] = leaf.grad().defined() ? leaf.grad() : at::zeros_like(leaf);
  };
  for (const auto& [role, leaf] : leaves.tensors) take(role, leaf);
  for (const auto& item : mechanism.named_parameters())
    take("parameter " + item.key(), item.value());
  return mixture;
}

/// The error of a product in bfloat16 as LibTorch computes it here: without AVX-512 its sums are
/// bfloat16,
/// too.
double error_of_one_product() {
  const at::Tensor a = some({74, 32}).to(at::kBFloat16), b = some({32, 32}).to(at::kBFloat16);
  return relative_error(at::matmul(a, b).to(at::kDouble),
                        at::matmul(a.to(at::kDouble), b.to(at::kDouble)));
}

/// Says of which types its inputs were, and in which a product of float32 comes out there.
class Spy final : public Mechanism {
 public:
  using Mechanism::Mechanism;
  std::vector<Role> roles() const override {
    return {{"query", Source::query_tokens, problem.head_dim, Feed::projected},
            {"key", Source::key_tokens, problem.head_dim, Feed::before},
            {"value", Source::key_tokens, problem.head_dim, Feed::slice}};
  }
  at::Tensor before(const at::Tensor& x, State*) override {
    types["before"] = x.scalar_type();
    types["product before"] = product();
    return x;
  }
  Mixed mix(const Inputs& inputs) {
    for (const auto& [role, tensor] : inputs.tensors) types[role] = tensor.scalar_type();
    types["product within"] = product();
    return {inputs["query"] + inputs["key"] + inputs["value"], {}};
  }
  std::map<std::string, at::ScalarType> types;

 private:
  static at::ScalarType product() {
    return at::matmul(at::ones({2, 2}), at::ones({2, 2})).scalar_type();
  }
};

}  // namespace

TEST_CASE("products are narrow within a scope, and as before without one", "[autocast]") {
  const at::Tensor x = some({2, 3});
  const at::Tensor weight = some({3, 2});
  const auto type = [&] { return at::matmul(x, weight).scalar_type(); };
  CHECK(type() == at::kFloat);
  {
    const AutocastScope scope(at::kCPU, at::kBFloat16);
    CHECK(type() == at::kBFloat16);
    CHECK(product_type(x) == at::kBFloat16);
    CHECK((at::matmul(x, weight) + x.narrow(1, 0, 2)).scalar_type() == at::kFloat);
    CHECK(at::matmul(x.to(at::kDouble), weight.to(at::kDouble)).scalar_type() == at::kDouble);
    CHECK(product_type(x.to(at::kDouble)) == at::kDouble);
    {
      const NoAutocast exact;
      CHECK(type() == at::kFloat);
      CHECK(product_type(x) == at::kFloat);
      { const NoAutocast again; }
      CHECK(type() == at::kFloat);
    }
    CHECK(type() == at::kBFloat16);
    { const AutocastScope within(at::kCPU, at::kBFloat16); }
    CHECK(type() == at::kBFloat16);
  }
  CHECK(type() == at::kFloat);
  const AutocastScope none(at::kCPU, std::nullopt);
  CHECK(type() == at::kFloat);
}

TEST_CASE("a weight that changed is converted anew, and its gradient is as wide as it",
          "[autocast]") {
  const at::Tensor x = some({2, 3});
  at::Tensor weight = some({3, 2}).clone().requires_grad_(true);  // no view: those are not kept
  const auto product = [&] {
    const AutocastScope scope(at::kCPU, at::kBFloat16);
    return at::matmul(x, weight);
  };
  const at::Tensor first = product();
  {
    const at::NoGradGuard no_grad;
    weight.mul_(2);
  }
  const at::Tensor second = product();
  CHECK(at::equal(second.detach(), first.detach() * 2));
  second.sum().backward();
  CHECK(weight.grad().scalar_type() == at::kFloat);
  const at::Tensor rounded = x.to(at::kBFloat16).to(at::kDouble);
  const at::Tensor want = rounded.t().matmul(at::ones({2, 2}, at::kDouble));
  CHECK(relative_error(weight.grad().to(at::kDouble), want) < 5e-3);
}

TEST_CASE("a layer under autocast gives its mix narrow inputs, and leaves the rest alone",
          "[autocast]") {
  const auto spy = std::make_shared<Spy>("spy", Options(), small(Pattern::causal));
  Implementation implementation;
  implementation.mix = [](Mechanism& mechanism, const Inputs& inputs, State*) {
    return static_cast<Spy&>(mechanism).mix(inputs);
  };
  Layer layer(spy, implementation, Scope::layer, 1);
  const at::Tensor x = some({2, 37, 32});
  const at::Tensor wide = layer.forward(x, x).output;
  for (const auto& [what, type] : spy->types) {
    INFO(what);
    CHECK(type == at::kFloat);
  }
  const AutocastScope scope(at::kCPU, at::kBFloat16);
  const at::Tensor narrow = layer.forward(x, x).output;
  CHECK(narrow.scalar_type() == at::kBFloat16);
  // Three products in a row, whose errors add up at worst.
  CHECK(relative_error(narrow.to(at::kDouble), wide.to(at::kDouble)) <
        std::max(1e-2, 3 * error_of_one_product()));
  REQUIRE(spy->types.size() == 6);
  for (const char* what : {"before", "product before", "product within"}) {
    INFO(what);
    CHECK(spy->types[what] == at::kFloat);
  }
  for (const char* role : {"query", "key", "value"}) {
    INFO(role);
    CHECK(spy->types[role] == at::kBFloat16);
  }
}

TEST_CASE("every mechanism mixes bfloat16 beside parameters in float32", "[autocast]") {
  const Registry registry = Registry::with_builtins();
  int with_parameters = 0;
  for (const std::string& name : registry.mechanisms()) {
    const Entry& entry = registry.entry(name);
    for (const Pattern pattern : entry.patterns) {
      const Problem problem = small(pattern);
      Problem asked = problem;
      asked.dtype = Dtype::bfloat16;
      Problem wide = problem;
      wide.dtype = Dtype::float64;
      const Options options = entry.derive(Options::resolve(entry.options, {}), problem);
      const auto mechanism = entry.make(options, problem);
      const auto exact = entry.make(options, wide);
      {
        const at::NoGradGuard no_grad;
        const auto parameters = mechanism->named_parameters();
        for (auto& item : exact->named_parameters()) item.value().copy_(parameters[item.key()]);
        const auto buffers = mechanism->named_buffers();
        for (auto& item : exact->named_buffers()) item.value().copy_(buffers[item.key()]);
      }
      Inputs inputs = random_inputs(*mechanism, 5, 1, false);
      for (auto& [role, tensor] : inputs.tensors) tensor = tensor.to(at::kBFloat16);
      const Implementation& composite = entry.implementations.front();
      const Mixture want = mixed(composite, *exact, inputs, at::kDouble);
      const Tolerance bar = tolerance(Dtype::bfloat16);
      for (const Implementation& implementation : entry.implementations) {
        if (!entry.supports(options, asked) || !implementation.supports(options, asked)) continue;
        INFO(name << "/" << implementation.name << " " << to_string(pattern));
        const Mixture got = mixed(implementation, *mechanism, inputs, at::kBFloat16);
        CHECK(got.output.scalar_type() == at::kBFloat16);
        CHECK(relative_error(got.output.to(at::kDouble), want.output) < bar.value);
        for (const auto& [what, gradient] : got.gradients) {
          INFO(what);
          const bool parameter = what.rfind("parameter ", 0) == 0;
          with_parameters += parameter;
          CHECK(gradient.scalar_type() == (parameter ? at::kFloat : at::kBFloat16));
          CHECK(relative_error(gradient.to(at::kDouble), want.gradients.at(what)) < bar.gradient);
        }
      }
    }
  }
  CHECK(with_parameters > 20);
}
