// The selective state space of Mamba-2, Dao and Gu 2024, in its dual form as attention: B, C and x
// of the paper are key, query and value. Heads share queries and keys in groups, which are this
// harness's kv_heads, and have a value each.
#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

/// Rows of a head's state, the paper's N.
std::int64_t mamba2_rows(const Options& options, const Problem& problem) {
  const std::int64_t said = options.integer("state");
  return said > 0 ? said : problem.head_dim;
}

class Mamba2 : public gated_state::GatedState {
 public:
  Mamba2(const std::string& name, const Options& chosen, const Problem& asked)
      : GatedState(name, chosen, asked) {
    const auto parameter = [&](const char* word) {
      const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
      return register_parameter(word, at::zeros({problem.heads, 1}, type), problem.gradient);
    };
    a_log = parameter("a_log");
    bias = parameter("bias");
    skip = parameter("skip");
  }

  /// The causal pattern alone is supported, where queries and keys are of the same tokens: a role
  /// of key tokens is one of kv_heads, a role of query tokens one of all heads.
  std::vector<Role> roles() const override {
    return finished_roles({{"query", Source::key_tokens, rows()},
                           {"key", Source::key_tokens, rows()},
                           {"value", Source::query_tokens, problem.value_dim},
                           {"time_step", Source::query_tokens, 1}});
  }

  void draw_parameters(std::uint64_t seed) override {
    GatedState::draw_parameters(seed);
    const at::NoGradGuard no_grad;
    gated_state::draw_decay_parameters(seed, a_log, bias, problem);
    skip.fill_(1);
  }

  Tensor a_log, bias, skip;  ///< [H, 1]

 private:
  std::int64_t rows() const override { return mamba2_rows(options, problem); }
};

/// x [B, G, T, N], each head of which serves H / G neighbours, as [B, H, T, N].
Tensor for_all_heads(const Tensor& x, std::int64_t heads) {
  if (x.size(1) == heads) return x;
  return x.unsqueeze(2).expand({-1, -1, heads / x.size(1), -1, -1}).flatten(1, 2);
}

gated_state::Call mamba2_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t) {
  const auto& self = dynamic_cast<const Mamba2&>(mechanism);
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const std::int64_t heads = self.problem.heads;
  gated_state::Call call;
  call.query = for_all_heads(without_padding(inputs["query"], mask).to(type), heads);
  call.key = for_all_heads(without_padding(inputs["key"], mask).to(type), heads);
  const Tensor value = without_padding(inputs["value"], mask).to(type);
  const Tensor raw = without_padding(inputs["time_step"], mask).to(type);
  const Tensor step = gated_state::stable_softplus(raw + self.bias.to(type).unsqueeze(1));
  call.value = value * step;
  call.added = value * self.skip.to(type).unsqueeze(1);
  call.log_decay = gated_state::learned_decay(raw, self.a_log, self.bias, mask);
  return call;
}

gated_state::StateSizes mamba2_sizes(const Options& options, const Problem& problem) {
  gated_state::StateSizes sizes = gated_state::sizes_of(problem, mamba2_rows(options, problem));
  sizes.gates = 1;
  sizes.shared = static_cast<double>(problem.heads / problem.kv_heads);
  return sizes;
}

}  // namespace

Entry mamba2() {
  Entry entry = gated_state::entry_of({"mamba2", mamba2_call, mamba2_sizes});
  entry.title = "Mamba-2's state space duality: a decay per head that each token says";
  entry.citation =
      "Dao, Gu 2024, Transformers are SSMs: Generalized Models and Efficient Algorithms Through "
      "Structured State Space Duality, arXiv:2405.21060";
  entry.formula =
      "S_t = e^(-A_h delta_t) S_{t-1} + delta_t k_t v_t^T,  delta_t = softplus(x_t + bias_h)\n"
      "y_t = S_t^T q_t + skip_h v_t";
  entry.options = gated_state::options({
      Option::integer("state", 0, "rows of a head's state, the paper's N; 0 = head_dim", 0),
  });
  entry.differs_from = {
      {"the paper's block puts a short convolution and SiLU behind the projections of query, key "
       "and value",
       gated_state::kBeforeSaid},
      {"the paper's block gates the output and then normalises it over all heads; here a head is "
       "normalised and then gated",
       gated_state::kOutputSaid}};
  entry.supports = [](const Options& options, const Problem& problem) {
    const Support support = gated_state::looks_back_only("mamba2", problem);
    return support ? token_mix_support("mamba2", options, problem) : support;
  };
  entry.make = maker<Mamba2>("mamba2");
  return entry;
}

}  // namespace attnbench::mechanisms
