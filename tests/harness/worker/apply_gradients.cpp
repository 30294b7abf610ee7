// Gradients that attnbench apply writes, against differences of the definitions.
#include "tasks/reference_rows.hpp"
#include "tests/harness/worker/apply_cases.hpp"
#include "tests/support/catch.hpp"

using namespace attnbench;
using namespace attnbench::test;

namespace {

/// The derivative of sum(upstream * output) along `direction` of one array of the definition.
double difference(const ApplyCase& one, reference::ReferenceInputs& inputs, reference::Array& array,
                  const at::Tensor& direction, const std::vector<double>& upstream) {
  constexpr double step = 1e-5;
  const tasks::Rows rows = tasks::sampled_rows(one.problem, 1 << 20, 1);
  const std::vector<double> centre = array.values;
  const std::vector<double> towards = tasks::to_array(direction).values;
  double sum = 0;
  for (const double sign : {1.0, -1.0}) {
    for (std::size_t i = 0; i < centre.size(); ++i) {
      array.values[i] = centre[i] + sign * step * towards[i];
    }
    const auto found = tasks::reference_rows(all_mechanisms().reference(one.entry->name),
                                             one.options, one.problem, inputs, rows);
    for (std::size_t i = 0; i < found.size(); ++i) sum += sign * upstream[i] * found[i];
  }
  array.values = centre;
  return sum / (2 * step);
}

void hold_gradient(const ApplyCase& one, const at::Tensor& gradient,
                   reference::ReferenceInputs& inputs, reference::Array& array,
                   const std::vector<double>& upstream) {
  REQUIRE(gradient.sizes().vec() == array.shape);
  const at::Tensor direction = tasks::seeded_normal(gradient.sizes(), 7, 1, at::kDouble);
  const double along = (gradient * direction).sum().item<double>();
  const double want = difference(one, inputs, array, direction, upstream);
  CHECK(std::abs(along - want) < 1e-6 * std::max(1.0, gradient.norm().item<double>()));
}

}  // namespace

TEST_CASE("gradients of inputs and parameters are those of the definition", "[apply]") {
  for_each_case(3, [](const ApplyCase& one) {
    INFO(one.where);
    const Inputs inputs = inputs_of(one);
    ApplyCall call(one, inputs);
    const Problem& problem = one.problem;
    const at::Tensor upstream = tasks::seeded_normal(
        {problem.batch, problem.heads, problem.length, problem.value_dim}, 9, 1, at::kDouble);
    call.request["gradient"] = call.put("gradient", upstream);
    const Json answer = call.run();
    INFO(answer.dump());
    REQUIRE(answer.at("status") == "ok");
    reference::ReferenceInputs exact = tasks::to_reference(*one.mechanism, inputs);
    const std::vector<double> weights =
        tasks::rows_of(upstream, tasks::sampled_rows(problem, 1 << 20, 1));
    for (const auto& [role, tensor] : inputs.tensors) {
      INFO("role " << role);
      hold_gradient(one, call.read("gradients/" + role), exact, exact.roles.at(role), weights);
    }
    for (const auto& item : one.mechanism->named_parameters()) {
      INFO("parameter " << item.key());
      hold_gradient(one, call.read("gradients/parameter." + item.key()), exact,
                    exact.parameters.at(item.key()), weights);
    }
  });
}
