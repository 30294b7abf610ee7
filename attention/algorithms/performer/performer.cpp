#include "attention/algorithms/performer/performer.hpp"

#include <cmath>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/algorithms/performer/random_features.hpp"
#include "attention/algorithms/prefix_pool/prefix_pool.hpp"
#include "attention/entry_parts.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using prefix_pool::Carry;
using prefix_pool::Query;
using Way = PerformerWay;

/// The inputs, with zeros for padding, whose features are -inf.
struct Call {
  Operand query, key;
  Tensor value;
};

Call call_of(const Performer& self, const Inputs& inputs) {
  Call call{inputs["query"], inputs["key"], inputs["value"]};
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

const causal_product::Form kRelu{causal_product::Feature::relu_plus_floor, true, 0};

/// Normalised linear attention over all keys, with these features of queries and keys.
Tensor product(const Tensor& queries, const Tensor& keys, const Tensor& value) {
  const causal_product::Form form{causal_product::Feature::identity, true, 0};
  const Tensor columns = causal_product::columns_of(value.to(keys.scalar_type()), form);
  const Tensor sum = at::matmul(keys.transpose(-2, -1), columns);
  return causal_product::result_of(at::matmul(queries, sum), form).to(value.scalar_type());
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

/// Weights sum to 1, so any constant may be taken off the values. With this many keys or fewer they
/// are centred: the parts of a key's gradient cancel the more, the fewer keys there are, wholly
/// with one, where float32 left 1e-6 of parts of size 1.
constexpr std::int64_t kFewKeys = 8;

Tensor bidirectional(Way way, const Performer& self, const Call& call) {
  const auto type = compute_type(call.value.scalar_type());
  if (self.published()) {
    const double epsilon = self.options.number("epsilon");
    return product(published_features(call.query, false, epsilon, type),
                   published_features(call.key, true, epsilon, type), call.value);
  }
  if (self.relu()) {
    return product(causal_product::feature_of(call.query.all(type), kRelu.feature),
                   causal_product::feature_of(call.key.all(type), kRelu.feature), call.value);
  }
  constexpr auto kind = Query::logits_plus_z;
  const auto pool = way == Way::fused ? prefix_pool::whole_fused : prefix_pool::whole;
  if (call.value.size(2) > kFewKeys) return pool(call.query, kind, call.key, call.value);
  const Tensor values = call.value.to(type);
  const Tensor centre = values.detach().mean(-2, true);
  return (pool(call.query, kind, call.key, values - centre) + centre).to(call.value.scalar_type());
}

/// Continues from `carry`, if there is one, and advances it.
Tensor pooled(Way way, const Call& call, std::int64_t chunk, Carry* carry) {
  constexpr auto kind = Query::logits_plus_z;
  if (way == Way::composite) {
    return prefix_pool::materialised(call.query, kind, call.key, call.value, carry);
  }
  if (way == Way::scan) return prefix_pool::scan(call.query, kind, call.key, call.value, carry);
  if (way == Way::fused) return prefix_pool::fused(call.query, kind, call.key, call.value, carry);
  return prefix_pool::chunked(call.query, kind, call.key, call.value, chunk, carry);
}

/// The same for relu, with the state `past` [B, H, S, Dv + 1], which may be undefined.
Tensor summed(Way way, const Call& call, std::int64_t chunk, const Tensor& past) {
  if (way == Way::composite) {
    return causal_product::materialised(call.query, call.key, call.value, kRelu, past);
  }
  if (way == Way::scan) {
    return causal_product::scan(call.query, call.key, call.value, kRelu, past);
  }
  if (way == Way::fused) return causal_product::fused(call.query, call.key, call.value, kRelu);
  return causal_product::chunked(call.query, call.key, call.value, kRelu, chunk, past);
}

/// From this position on, chunks replace the kernel in a stream. The kernel adds single tokens to
/// its sums: in a stream of a million tokens in float32 the sums lost 7e-4 (presumably small terms
/// vanish beside a large sum), and less than 1e-4 when chunks were summed first.
constexpr std::int64_t kOneByOne = 1 << 16;

Tensor continued(Way way, const Performer& self, const Call& call, State& state) {
  const at::NoGradGuard no_grad;
  const auto count = call.value.size(2);
  const auto chunk = self.options.integer("chunk");
  if (way == Way::fused && state.position >= kOneByOne && count >= kShortStep) way = Way::chunked;
  if (way == Way::chunked && count < kShortStep) way = Way::scan;
  state.position += count;
  Tensor& sum = state["sum"];
  Tensor& normaliser = state["normaliser"];
  if (!self.relu()) {
    Carry carry{state["maximum"], normaliser, sum};
    return pooled(way, call, chunk, &carry);
  }
  if (way == Way::fused) {
    const causal_product::Memory memory{sum, normaliser};
    return causal_product::fused(call.query, call.key, call.value, kRelu, &memory);
  }
  const Tensor past = at::cat({sum, normaliser.unsqueeze(-1)}, -1);
  const Tensor y = summed(way, call, chunk, past);
  sum.copy_(past.narrow(-1, 0, sum.size(-1)));
  normaliser.copy_(past.select(-1, sum.size(-1)));
  return y;
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
  const Carry carry = prefix_pool::empty_carry(batch, problem.heads, options.integer("features"),
                                               problem.value_dim, tensor);
  State state;
  state.tensors = {{"normaliser", carry.normaliser}, {"sum", carry.sum}};
  if (!relu()) state.tensors["maximum"] = carry.maximum;
  return state;
}

Mixed mix_performer(Way way, Mechanism& mechanism, const Inputs& inputs, State* state) {
  auto& self = dynamic_cast<Performer&>(mechanism);
  if (state == nullptr) self.count_forward();
  const Call call = call_of(self, inputs);
  if (self.problem.pattern != Pattern::causal) {
    if (state) throw UnsupportedError("performer: only the causal pattern continues from a state");
    return {bidirectional(way, self, call), {}};
  }
  if (state) return {continued(way, self, call, *state), {}};
  const auto chunk = self.options.integer("chunk");
  if (self.relu()) return {summed(way, call, chunk, {}), {}};
  return {pooled(way, call, chunk, nullptr), {}};
}

}  // namespace attnbench
