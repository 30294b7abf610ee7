// RWKV-7, Peng et al. 2025: a delta rule that erases under another key than it writes, at a rate
// for each channel, from a state whose rows decay at rates that each token says.
#include <cmath>

#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/tokens/tokens.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench::mechanisms {
namespace {

using at::Tensor;

class Rwkv7 : public gated_state::GatedState {
 public:
  Rwkv7(const std::string& name, const Options& chosen, const Problem& asked)
      : GatedState(name, chosen, asked) {
    const auto parameter = [&](const char* word) {
      const auto type = at::TensorOptions(scalar_type(problem.dtype)).device(problem.device);
      const Tensor own = at::zeros({problem.heads, problem.head_dim}, type);
      return register_parameter(word, own, problem.gradient);
    };
    decay_bias = parameter("decay_bias");
    rate_bias = parameter("rate_bias");
    removal = parameter("removal");
    replacement = parameter("replacement");
  }

  std::vector<Role> roles() const override {
    std::vector<Role> roles = query_key_value(problem);
    roles.push_back({"decay", Source::key_tokens, problem.head_dim});
    roles.push_back({"learning_rate", Source::key_tokens, problem.head_dim});
    return finished_roles(std::move(roles), {"query", "key", "value", "decay", "learning_rate"});
  }

  /// As published code initialises them in the first layer of a model: channels of a head, and
  /// heads, from slow decays to fast ones.
  void draw_parameters(std::uint64_t seed) override {
    GatedState::draw_parameters(seed);
    const at::NoGradGuard no_grad;
    const auto type = at::TensorOptions(at::kDouble).device(problem.device);
    const Tensor place = at::linspace(0, 1, removal.numel(), type).view(removal.sizes());
    const Tensor of_head = at::linspace(-1, 1, problem.head_dim, type);
    const Tensor bent = of_head * of_head.abs();
    decay_bias.copy_(6 * place - 5.5 + 2.5 * bent);
    rate_bias.copy_(0.4 * place - 0.39 + 0.3 * bent);
    removal.copy_(0.76 - 0.1 * place);
    replacement.fill_(1.02);
  }

  Tensor decay_bias, rate_bias, removal, replacement;  ///< b, c, xi and alpha [H, D]
};

gated_state::Call rwkv7_call(const Mechanism& mechanism, const Inputs& inputs, std::int64_t) {
  const auto& self = dynamic_cast<const Rwkv7&>(mechanism);
  const auto type = compute_type(inputs["value"].scalar_type());
  const Tensor& mask = inputs.key_mask;
  const auto given = [&](const char* role) { return without_padding(inputs[role], mask).to(type); };
  const auto of_heads = [&](const Tensor& x) { return x.to(type).unsqueeze(1); };  // [H, 1, D]
  const Tensor key = given("key");
  gated_state::Call call;
  call.query = inputs["query"].to(type);
  call.value = given("value");
  call.beta = at::sigmoid(given("learning_rate") + of_heads(self.rate_bias));
  call.removal =
      gated_state::normalised(key * of_heads(self.removal), self.options.number("epsilon"));
  call.key = key * (1 + of_heads(self.replacement) * (call.beta - 1));
  const Tensor decay = at::sigmoid(given("decay") + of_heads(self.decay_bias));
  call.steepest = std::exp(-0.5);
  call.log_decay = without_padding(decay * -call.steepest, mask);
  return call;
}

gated_state::StateSizes rwkv7_sizes(const Options& options, const Problem& problem) {
  gated_state::StateSizes sizes = gated_state::channel_gated_sizes(options, problem);
  sizes.rates = static_cast<double>(problem.head_dim);
  return sizes;
}

}  // namespace

Entry rwkv7() {
  Entry entry = gated_state::entry_of({"rwkv7", rwkv7_call, rwkv7_sizes});
  entry.title = "RWKV-7: a delta rule with a decay and a learning rate for each channel";
  entry.citation =
      "Peng, Zhang, Goldstein, Alcaide, Du, Hou, Lin, Liu, Lu, Merrill, Song, Tan, Utpala, Wilce, "
      "Wind, Wu, Wuttke, Zhou-Zheng 2025, RWKV-7 \"Goose\" with Expressive Dynamic State "
      "Evolution, arXiv:2503.14456";
  entry.formula =
      "S_t = (diag(w_t) - (a_t * r_t) r_t^T) S_{t-1} + k_t v_t^T,  y_t = S_t^T q_t\n"
      "w_t = exp(-e^(-1/2) sigmoid(d_t + b)),  a_t = sigmoid(x_t + c)\n"
      "r_t = xi * u_t / |xi * u_t|,  k_t = u_t * (1 + alpha * (a_t - 1)),  u_t the token's key\n"
      "* a product of channels; b, c, xi, alpha parameters";
  entry.options = gated_state::options(
      {Option::number("epsilon", 1e-6, "added to |x|^2 before removal keys are divided by |x|",
                      1e-12)},
      "all roles");
  entry.differs_from = {
      {"the published layer shifts tokens, by a mixture with the one before, of its own for each "
       "projection",
       "before=conv with taps=2 mixes so, alike for all roles"},
      {"the published layer projects decays and learning rates by two small layers; here they are "
       "projections of full rank, with its biases",
       "not available; which rates can be said does not change the mix"},
      {"published layers but the first mix their values with those of the first",
       "not available: a mix knows no other layer"},
      {"the published layer adds a bonus to the output, v_t times a weighted product of q_t and "
       "k_t",
       "not available"},
      {"the published layer normalises the output with its mean subtracted, and gates it by "
       "another projection, without silu",
       gated_state::kOutputSaid}};
  entry.make = maker<Rwkv7>("rwkv7");
  return entry;
}

}  // namespace attnbench::mechanisms
