// A Perceiver's cross attention to its latents (Jaegle et al. 2021, encode), which the tokens read
// by the pooled keys: attention with bounded-memory control (Peng et al. 2022, ABC), whose control
// is a softmax over the tokens. There is no parameter in between, rows of weights sum to one and
// the output is linear in the values. Perceiver IO reads differently: its keys and values are
// projections of the latents V_l, which is luna with tied = false. V_l are the new latent stream.
// The encode alone is softmax in the cross pattern with as many queries as latents. Causal: the
// latents are those of the tokens seen so far, and the stream does not change.
#include "attention/algorithms/slots/implementations.hpp"
#include "attention/algorithms/softmax/implementations.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;
using slots::Call;
using slots::Form;

Form form_of(const Mechanism& mechanism) {
  return {slots::Weight::exponential, scale_of(mechanism)};
}

class Perceiver : public Mechanism {
 public:
  using Mechanism::Mechanism;

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.insert(roles.begin(), {"latent_query", Source::latent_stream, problem.head_dim});
    return roles;
  }

  /// In float32 for 16-bit inputs: sums over many tokens need the mantissa.
  State empty_state(std::int64_t batch, std::int64_t,
                    const at::TensorOptions& tensor) const override {
    if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
    return slots::empty_state(form_of(*this),
                              {batch, problem.heads, options.integer("latents_per_head"),
                               problem.head_dim + problem.value_dim},
                              tensor);
  }
};

Mixed bidirectional(const Mechanism& mechanism, const Inputs& inputs) {
  const auto type = compute_type(inputs["query"].scalar_type());
  const double scale = scale_of(mechanism);
  const auto shown = [&](const char* role) {
    return without_padding(inputs[role].to(type), inputs.key_mask);
  };
  const Tensor keys = shown("key");
  Tensor pooled_keys, pooled_values;
  {
    const Tensor weights = slots::softmax_weights(inputs["latent_query"].to(type), keys, scale,
                                                  slots::hidden_keys(inputs.key_mask));
    pooled_keys = at::matmul(weights, keys);
    pooled_values = at::matmul(weights, shown("value"));
  }
  const Tensor y = at::matmul(slots::softmax_weights(inputs["query"].to(type), pooled_keys, scale),
                              pooled_values);
  const auto given = inputs["query"].scalar_type();
  return {y.to(given), pooled_values.transpose(1, 2).flatten(2).to(given)};
}

Mixed tiled(const Mechanism& mechanism, const Inputs& inputs) {
  const double scale = scale_of(mechanism);
  const auto [keys, values] = slots::softmax_pooled(
      {inputs["latent_query"], inputs["key"], inputs["value"], inputs.key_mask, scale});
  const Tensor y = softmax_tiled({inputs["query"], keys, values, {}, scale});
  return {y, values.transpose(1, 2).flatten(2)};
}

Call call_of(const Mechanism&, const Inputs& inputs) {
  return {inputs["latent_query"], inputs["query"], inputs["key"],
          inputs["key"],          inputs["value"], {}};
}

slots::Sizes sizes_of(const Options& options, const Problem& problem) {
  return {problem, static_cast<double>(options.integer("latents_per_head")), false, true};
}

Cost bidirectional_cost(const Options& options, const Problem& problem) {
  return slots::bidirectional_cost(sizes_of(options, problem));
}

Cost tiled_cost(const Options& options, const Problem& problem) {
  return slots::tiled_cost(sizes_of(options, problem));
}

}  // namespace

Entry perceiver() {
  Entry entry;
  entry.name = "perceiver";
  entry.title =
      "Perceiver's encoding of tokens into latents, read by the pooled keys as in ABC (the encode "
      "alone is softmax, cross, with as many queries as latents)";
  entry.citation =
      "Jaegle, Gimeno, Brock, Zisserman, Vinyals, Carreira 2021, Perceiver: General Perception "
      "with Iterative Attention, arXiv:2103.03206 (the encoding); Peng, Kasai, Pappas, Yogatama, "
      "Wu, Kong, Schwartz, Smith 2022, ABC: Attention with Bounded-memory Control, "
      "arXiv:2110.02488 (the whole)";
  entry.formula =
      "K_l = sum_s softmax_s(scale p_l.k_s) k_s,  V_l = sum_s softmax_s(scale p_l.k_s) v_s,  p the "
      "latents\n"
      "y_t = sum_l softmax_l(scale q_t.K_l) V_l";
  entry.differs_from = {
      {"Perceiver IO (Jaegle et al. 2022) reads the latents by keys and values projected from "
       "them; here the pooled keys are the keys, which makes it ABC",
       "luna with tied=false has that reading, bidirectional and cross"},
      {"a Perceiver processes its latents further by self-attention; here every layer encodes and "
       "reads "
       "once",
       "not available: the latents alone are latents.npy of apply"}};
  entry.options = latents_options({scale_option(), chunk_option()});
  entry.patterns = {Pattern::bidirectional, Pattern::causal, Pattern::cross};
  entry.supports = [](const Options&, const Problem& problem) {
    return unshared_heads("perceiver", problem);
  };
  entry.derive = [](const Options& options, const Problem& problem) {
    return derive_latents("perceiver", options, problem, 32);
  };
  entry.make = maker<Perceiver>("perceiver");
  entry.implementations =
      slots::implementations({"perceiver", form_of, call_of, sizes_of, bidirectional,
                              bidirectional_cost, tiled, tiled_cost});
  return entry;
}

}  // namespace attnbench::mechanisms
