// What the published layers do with a head's output before it is projected: a norm, and a gate.
//
// The norm has no weights: behind it stands the output projection, which can hold them.
#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"

namespace attnbench::gated_state {
namespace {

using at::Tensor;

/// What the norm adds to the mean square, as in the published code of GLA and DeltaNet.
constexpr double kOutputEpsilon = 1e-5;

bool is_plain(const Options& options) { return options.text("output") == "plain"; }
bool is_gated(const Options& options) { return options.text("output") == "gated"; }

}  // namespace

Option output_option() {
  return Option::text(
      "output", {"plain", "normalised", "gated"},
      "of each head and token: plain: the mix alone; normalised: divided by its root mean square, "
      "as the published layers do; gated: that times silu of a projection of the token");
}

Tensor finished_output(const Mechanism& mechanism, const Inputs& inputs, const Tensor& y) {
  if (is_plain(mechanism.options)) return y;
  const auto type = compute_type(y.scalar_type());
  const Tensor wide = y.to(type);
  const Tensor normed = wide * at::rsqrt((wide * wide).mean(-1, true) + kOutputEpsilon);
  if (!is_gated(mechanism.options)) return normed;
  return normed * at::silu(inputs["output_gate"].to(type));
}

Cost finished_cost(Cost mix, const Options& options, const Problem& problem) {
  if (is_plain(options)) return mix;
  const double numbers = static_cast<double>(problem.batch * problem.heads * problem.length) *
                         static_cast<double>(problem.value_dim);
  const auto bytes = static_cast<double>(bytes_of(problem.dtype));
  const double wide = bytes > 4 ? bytes : 4;
  const double gates = is_gated(options) ? 1 : 0;
  mix.model_flops += numbers * (3 + 3 * gates);  // square, sum and factor; silu and its product
  mix.executed_flops += numbers * (3 + 3 * gates);
  mix.exponentials += numbers * gates;
  mix.minimal_bytes += numbers * gates * bytes;
  mix.workspace_bytes += numbers * (2 + gates) * wide;
  mix.saved_bytes += numbers * (3 + 2 * gates) * wide;
  return mix;
}

}  // namespace attnbench::gated_state
