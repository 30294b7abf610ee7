// The RG-LRU's implementations against its definition, and what is known of it.
#include <cmath>
#include <limits>

#include "attention/registry.hpp"
#include "tests/attention/held_to_reference.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace mechanisms {
Entry rg_lru();
}
namespace reference {
Reference rg_lru();
}

namespace {

using test::relative_error;

const std::vector<std::string> implementations{"composite", "scan", "chunked"};

/// One configured rg_lru whose biases are not zero, with inputs and its definition.
struct Trial {
  Problem problem;
  Entry entry = mechanisms::rg_lru();
  Options options;
  std::shared_ptr<Mechanism> mechanism;
  Inputs inputs;
  at::Tensor upstream;

  Trial(std::int64_t length, std::int64_t width, std::int64_t chunk = 8) {
    problem.batch = 2;
    problem.heads = problem.kv_heads = 2;
    problem.length = problem.key_length = length;
    problem.head_dim = problem.value_dim = width;
    problem.dtype = Dtype::float64;
    problem.gradient = true;
    options = Options::resolve(entry.options, {{"chunk", chunk}});
    mechanism = entry.make(options, problem);
    at::manual_seed(length * 100 + width);
    const at::NoGradGuard no_grad;
    for (auto& parameter : mechanism->parameters()) {
      parameter.add_(at::randn(parameter.sizes(), at::kDouble), 0.5);
    }
    for (const Role& role : mechanism->roles()) {
      inputs.tensors[role.name] = at::randn({2, 2, length, width}, at::kDouble);
    }
    upstream = at::randn({2, 2, length, width}, at::kDouble);
  }

  at::Tensor mix(const std::string& name, const Inputs& with, State* state = nullptr) {
    return entry.implementation(name).mix(*mechanism, with, state).output;
  }
  at::Tensor mix(const std::string& name) { return mix(name, inputs).detach(); }

  Inputs slice(std::int64_t begin, std::int64_t end) const {
    Inputs part = inputs;
    for (auto& [role, tensor] : part.tensors) tensor = tensor.slice(2, begin, end);
    if (part.key_mask.defined()) part.key_mask = part.key_mask.slice(1, begin, end);
    return part;
  }

  at::Tensor expected() const {
    reference::ReferenceInputs given;
    const auto array = [](const at::Tensor& x) {
      const at::Tensor dense = x.detach().contiguous();
      const double* begin = dense.data_ptr<double>();
      return reference::Array{dense.sizes().vec(), {begin, begin + dense.numel()}};
    };
    for (const auto& [role, tensor] : inputs.tensors) given.roles[role] = array(tensor);
    for (const auto& item : mechanism->named_parameters()) {
      given.parameters[item.key()] = array(item.value());
    }
    if (inputs.key_mask.defined()) {
      for (const double real : array(inputs.key_mask.to(at::kDouble)).values) {
        given.key_mask.push_back(real != 0);
      }
    }
    std::vector<reference::RowIndex> rows;
    for (std::int64_t i = 0; i < 4 * problem.length; ++i) {
      rows.push_back({i / problem.length / 2, i / problem.length % 2, i % problem.length});
    }
    return at::tensor(reference::rg_lru()(options, problem, given, rows), at::kDouble)
        .view(upstream.sizes());
  }

  /// Gradients of the inputs and parameters by name.
  std::map<std::string, at::Tensor> gradients(const std::string& name) {
    Inputs leaves = inputs;
    for (auto& [role, leaf] : leaves.tensors) leaf = leaf.detach().requires_grad_(true);
    mechanism->zero_grad();
    mix(name, leaves).backward(upstream);
    std::map<std::string, at::Tensor> all;
    for (const auto& [role, leaf] : leaves.tensors) all[role] = leaf.grad();
    for (const auto& item : mechanism->named_parameters()) {
      all[item.key()] = item.value().grad().clone();
    }
    return all;
  }

  /// The definition's derivative of sum(upstream * output) along `direction` of `tensor`.
  double slope(at::Tensor tensor, const at::Tensor& direction) const {
    const at::NoGradGuard no_grad;
    constexpr double step = 1e-5;
    tensor.add_(direction, step);
    const at::Tensor above = expected();
    tensor.add_(direction, -2 * step);
    const at::Tensor below = expected();
    tensor.add_(direction, step);
    return ((above - below) * upstream).sum().item<double>() / (2 * step);
  }
};

}  // namespace

TEST_CASE("rg_lru: every form equals the definition at odd sizes") {
  for (const auto& [length, width] :
       std::vector<std::pair<std::int64_t, std::int64_t>>{{1, 43}, {3, 1}, {8, 7}, {257, 43}}) {
    Trial trial(length, width);
    const at::Tensor expected = trial.expected();
    for (const auto& name : implementations) {
      CAPTURE(length, width, name);
      CHECK(relative_error(trial.mix(name), expected) < 1e-12);
    }
  }
}

TEST_CASE("rg_lru: gradients of inputs, lambda and biases are those of the definition") {
  for (const auto& name : implementations) {
    Trial trial(37, 5, 2);  // pieces of 32 tokens: the gradient crosses their border
    trial.inputs.key_mask = at::ones({2, 37}, at::kBool);
    trial.inputs.key_mask[0].slice(0, 4, 9).fill_(false);
    for (const auto& [what, gradient] : trial.gradients(name)) {
      CAPTURE(name, what);
      const bool role = trial.inputs.tensors.count(what) != 0;
      const at::Tensor tensor =
          role ? trial.inputs[what] : trial.mechanism->named_parameters()[what];
      const at::Tensor direction = at::randn_like(gradient);
      CHECK((gradient * direction).sum().item<double>() ==
            Approx(trial.slope(tensor, direction)).epsilon(1e-6));
    }
  }
}

TEST_CASE("rg_lru: steps and blocks equal the whole over 2000 tokens") {
  const at::NoGradGuard no_grad;
  Trial trial(2000, 3);
  const at::Tensor whole = trial.mix("composite");
  for (const auto& name : implementations) {
    CAPTURE(name);
    State state = trial.mechanism->empty_state(2, 2000, at::TensorOptions(at::kDouble));
    const auto bytes = state.bytes();
    std::vector<at::Tensor> outputs;
    std::int64_t done = 0;
    while (done < 2000) {
      const std::int64_t count = done < 1900 ? (done % 3 == 0 ? 95 : 1) : 1;
      const std::int64_t end = std::min<std::int64_t>(2000, done + count);
      outputs.push_back(trial.mix(name, trial.slice(done, end), &state));
      done = end;
    }
    CHECK(relative_error(at::cat(outputs, 2), whole) < 1e-12);
    CHECK(state.position == 2000);
    CHECK(state.bytes() == bytes);
  }
}

TEST_CASE("rg_lru: padded tokens pass the state by, whatever they hold") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    Trial trial(40, 5);
    trial.inputs.key_mask = at::ones({2, 40}, at::kBool);
    trial.inputs.key_mask[0].slice(0, 3, 21).fill_(false);
    trial.inputs.key_mask[1].fill_(false);
    const at::Tensor expected = trial.expected();
    const auto clean = trial.gradients(name);
    for (auto& [role, tensor] : trial.inputs.tensors) {
      tensor[0].slice(1, 3, 21).fill_(std::numeric_limits<double>::quiet_NaN());
      tensor[1].fill_(std::numeric_limits<double>::infinity());
    }
    CHECK(relative_error(trial.mix(name), expected) < 1e-12);
    CHECK(trial.mix(name)[1].abs().max().item<double>() == 0);
    for (const auto& [what, gradient] : trial.gradients(name)) {
      CAPTURE(what);
      CHECK(relative_error(gradient, clean.at(what)) < 1e-12);
    }
  }
}

TEST_CASE("rg_lru: a closed gate holds the state, an open one forgets it") {
  for (const auto& name : implementations) {
    CAPTURE(name);
    Trial trial(20, 3);
    const at::NoGradGuard no_grad;
    // sigmoid(-1000) is 0: a is 1 and nothing enters.
    trial.inputs.tensors["recurrence_gate"].slice(2, 10, 20).fill_(-1000);
    at::Tensor y = trial.mix(name);
    CHECK(at::equal(y.slice(2, 10, 20), y.slice(2, 9, 10).expand({2, 2, 10, 3})));
    // softplus(1000) is 1000: a is 0, and the output the gated value itself.
    trial.inputs.tensors["recurrence_gate"].fill_(3);
    for (auto& item : trial.mechanism->named_parameters()) {
      item.value().fill_(item.key() == "lambda" ? 1000 : 0);
    }
    y = trial.mix(name);
    const at::Tensor gated = at::sigmoid(trial.inputs["input_gate"]) * trial.inputs["value"];
    CHECK(relative_error(y, gated) < 1e-12);
    const auto gradients = [&] {
      const at::AutoGradMode record(true);
      return trial.gradients(name);
    }();
    for (const auto& [what, gradient] : gradients) {
      CAPTURE(what);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("rg_lru: lambda is drawn so that fully gated decays lie in [0.9, 0.999]") {
  Trial trial(1, 500);
  for (const Dtype dtype : {Dtype::float64, Dtype::bfloat16}) {
    Problem problem = trial.problem;
    problem.dtype = dtype;
    const auto mechanism = trial.entry.make(trial.options, problem);
    const at::Tensor lambda =
        mechanism->named_parameters()["lambda"].detach().clone().to(at::kDouble);
    const at::Tensor decay = (at::softplus(lambda) * -8).exp();
    CAPTURE(to_string(dtype));
    const double slack = dtype == Dtype::float64 ? 1e-9 : 4e-3;
    CHECK(decay.min().item<double>() > 0.9 - slack);
    CHECK(decay.max().item<double>() < 0.999 + slack);
    CHECK(decay.mean().item<double>() == Approx(0.9495).margin(0.004));
    mechanism->draw_parameters(7);
    CHECK_FALSE(
        at::equal(mechanism->named_parameters()["lambda"].detach().to(at::kDouble), lambda));
  }
  CHECK_FALSE(trial.entry.supports(trial.options, [&] {
    Problem both = trial.problem;
    both.pattern = Pattern::bidirectional;
    return both;
  }()));
}

}  // namespace attnbench
