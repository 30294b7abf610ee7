#include "tasks/mix_case.hpp"

#include "tasks/continuation.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks {

MixCase case_of(const Registry& registry, const BlockMechanism& of, Mechanism& mechanism,
                const Inputs& inputs, std::uint64_t seed) {
  return {registry.entry(of.cell.mechanism),
          chosen(registry, of.cell, of.forecast),
          registry.reference(of.cell.mechanism),
          mechanism,
          inputs,
          seed};
}

Problem MixCase::problem() const {
  Problem own = mechanism.problem;
  const at::ScalarType given = inputs.tensors.begin()->second.scalar_type();
  for (const Dtype dtype : {Dtype::float32, Dtype::float64, Dtype::bfloat16, Dtype::float16}) {
    if (scalar_type(dtype) == given) own.dtype = dtype;
  }
  return own;
}

at::Tensor MixCase::output_of(const Implementation& one, const Inputs& given) const {
  if (past == 0) return one.mix(mechanism, given, nullptr).output;
  const std::int64_t count = mechanism.problem.length - past;
  State state = state_after(one, mechanism, given, past, count);
  return one.mix(mechanism, token_slice(mechanism, given, past, count), &state).output;
}

Cost MixCase::cost_of(const Implementation& one) const {
  Problem of = problem();
  if (past == 0) return one.cost(mechanism.options, of);
  const std::int64_t count = of.length - past;
  of.length = of.key_length = past;
  return block_cost(one, mechanism.options, of, count);
}

at::Tensor MixCase::real_tokens() const {
  const at::Tensor& mask = inputs.key_mask;
  if (!mask.defined() || mechanism.problem.pattern == Pattern::cross) return {};
  return mask.narrow(1, past, mask.size(1) - past);
}

at::Tensor MixCase::with_real_rows(const at::Tensor& output) const {
  const at::Tensor real = real_tokens();
  if (!real.defined() || !output.defined()) return output;
  return output.masked_fill(real.logical_not().unsqueeze(1).unsqueeze(-1), 0.0);
}

Rows MixCase::rows(const Problem& of, std::int64_t count, std::uint64_t row_seed) const {
  Problem outputs = of;
  outputs.length -= past;
  return sampled_rows(outputs, count, row_seed, real_tokens());
}

reference::ReferenceInputs MixCase::exact_inputs(const Problem& of) const {
  const at::Tensor& mask = inputs.key_mask;
  if (!mask.defined() || mask.size(1) == of.key_length) return to_reference(mechanism, inputs);
  return to_reference(mechanism, token_slice(mechanism, inputs, 0, of.key_length));
}

std::vector<double> MixCase::defined_rows(const Problem& of,
                                          const reference::ReferenceInputs& exact,
                                          Rows rows) const {
  for (reference::RowIndex& row : rows) row.t += past;
  return reference_rows(reference, mechanism.options, of, exact, rows);
}

}  // namespace attnbench::tasks
