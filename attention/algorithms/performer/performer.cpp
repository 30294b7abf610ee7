#include "attention/algorithms/performer/performer.hpp"

#include <cmath>

#include "attention/algorithms/performer/random_features.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using feature_mix::Call;
using feature_mix::Way;

const causal_product::Form kRelu{causal_product::Feature::relu_plus_floor, true, 0};

/// With zeros for padding, whose features are -inf.
Call call_of(const Performer& self, const Inputs& inputs) {
  Call call{inputs["query"], inputs["key"], inputs["value"], !self.relu(), kRelu};
  call.query.features = self.features(self.published());
  call.key.features = self.features(!self.relu());
  if (!call.key.features.omega.defined()) {
    const auto type = compute_type(call.value.scalar_type());
    call.query.whole = call.query.whole.to(type) * self.scale();
    call.key.whole = call.key.whole.to(type) * self.scale();
  }
  call.key.features.hidden = padded_tokens(inputs.key_mask);
  call.key.whole = without_padding(call.key.whole, inputs.key_mask);
  call.value = without_padding(call.value, inputs.key_mask);
  return call;
}

/// exp(h - stabiliser) + epsilon, where the stabiliser is the largest omega_i.xh of a token or, for
/// keys, of all tokens of the head, without a gradient. As in performer-pytorch.
Tensor published_features(const Operand& x, bool of_all, double epsilon, at::ScalarType type) {
  const Tensor h = x.all(type);
  Features plain = x.features;
  plain.half_square = false;
  const Tensor projected = plain.of(x.whole.detach().to(type));
  Tensor most = projected.amax(-1, true);
  if (of_all) most = most.amax(-2, true);
  const Tensor phi = (h - most.masked_fill(at::isinf(most), 0)).exp() + epsilon;
  return x.features.hidden.defined() ? phi.masked_fill(x.features.hidden, 0) : phi;
}

Tensor bidirectional(Way way, const Performer& self, const Call& call) {
  if (!self.published()) return feature_mix::whole(way, call);
  const auto type = compute_type(call.value.scalar_type());
  const double epsilon = self.options.number("epsilon");
  return feature_mix::whole(way, {published_features(call.query, false, epsilon, type),
                                  published_features(call.key, true, epsilon, type),
                                  call.value,
                                  false,
                                  {causal_product::Feature::identity, true, 0}});
}

}  // namespace

Performer::Performer(const std::string& name, const Options& chosen, const Problem& asked)
    : Mechanism(name, chosen, asked) {
  if (options.text("projection") == "none") return;
  const Tensor* const given = GivenWeights::find("omega");
  omega_ = register_buffer("omega", given != nullptr ? *given : drawn("omega"));
  if (options.integer("redraw_every") == 0) return;
  training_forwards_ = register_buffer("training_forwards", at::zeros({1}, at::kLong));
}

std::vector<Role> Performer::roles() const { return query_key_value(problem); }

void Performer::draw_parameters(std::uint64_t seed) {
  const at::NoGradGuard no_grad;
  seed_ = seed;
  if (omega_.defined()) omega_.copy_(drawn("omega"));
  if (training_forwards_.defined()) training_forwards_.zero_();
}

Tensor Performer::drawn(const std::string& name) const {
  RandomFeatures asked;
  asked.blocks = options.boolean("features_of_each_head") ? problem.heads : 0;
  asked.count = options.integer("features");
  asked.width = problem.head_dim;
  asked.orthogonal = options.text("projection") == "orthogonal";
  asked.chi_norms = options.text("norms") == "chi";
  return draw_features(seed_, name, asked, problem);
}

void Performer::count_forward() {
  if (!training_forwards_.defined() || !is_training() || !at::GradMode::is_enabled()) return;
  const at::NoGradGuard no_grad;
  const auto done = training_forwards_.item<std::int64_t>();
  const auto every = options.integer("redraw_every");
  if (done > 0 && done % every == 0) omega_.copy_(drawn("omega " + std::to_string(done / every)));
  training_forwards_.add_(1);
}

Features Performer::features(bool half_square) const {
  Features map;
  // A later draw must not change the backward pass of this one.
  map.omega = training_forwards_.defined() ? omega_.clone() : omega_;
  map.scale = scale();
  map.half_square = half_square;
  return map;
}

double Performer::scale() const { return std::pow(static_cast<double>(problem.head_dim), -0.25); }

State Performer::empty_state(std::int64_t batch, std::int64_t,
                             const at::TensorOptions& tensor) const {
  if (problem.pattern != Pattern::causal) return Mechanism::empty_state(batch, 0, tensor);
  return feature_mix::empty_state(problem, batch, options.integer("features"), !relu(), tensor);
}

Mixed mix_performer(Way way, Mechanism& mechanism, const Inputs& inputs, State* state) {
  auto& self = dynamic_cast<Performer&>(mechanism);
  if (state == nullptr) self.count_forward();
  const Call call = call_of(self, inputs);
  if (self.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("performer: only the causal pattern continues from a state");
    return {bidirectional(way, self, call), {}};
  }
  const auto chunk = self.options.integer("chunk");
  return {state != nullptr ? feature_mix::continued(way, call, chunk, *state)
                           : feature_mix::causal(way, call, chunk),
          {}};
}

}  // namespace attnbench
