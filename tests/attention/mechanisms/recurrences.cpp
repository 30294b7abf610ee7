// What is known of mechanisms with a recurrent state without computing it: which of them is another
// one when its gates, decays or slots are set so.
#include <cmath>
#include <limits>

#include "attention/algorithms/causal_product/causal_product.hpp"
#include "tests/attention/fixture.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using test::count;
using test::Fixture;
using test::Overrides;
using test::relative_error;
using test::word;

/// 53 tokens of 16 numbers in chunks of 8, unless said.
Fixture held(const std::string& mechanism, Overrides said = {}, std::int64_t length = 53,
             std::int64_t width = 16, Pattern pattern = Pattern::causal) {
  said.insert({"chunk", count(8)});
  return {mechanism, test::two_by_two(length, width, pattern), said};
}

/// `to` on the inputs of `from`.
void share(const Fixture& from, Fixture& to) {
  for (const auto& [role, tensor] : from.inputs.tensors) {
    if (to.inputs.tensors.count(role) != 0) to.inputs.tensors[role] = tensor;
  }
}

/// Every form that supports its problem, or more than half differs from it.
void check_equal(const Fixture& held, const at::Tensor& want, bool equal = true) {
  int forms = 0;
  for (const Implementation& form : held.entry.implementations) {
    if (form.supports && !form.supports(held.options, held.problem)) continue;
    CAPTURE(held.entry.name, form.name);
    const double error = relative_error(held.output(form.name), want);
    CHECK((equal ? error < 1e-12 : error > 1e-3));
    ++forms;
  }
  CHECK(forms > 0);
}

/// Linear attention without a normaliser.
at::Tensor product(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value) {
  return causal_product::scan(query, key, value, {});
}

at::Tensor linear_product(const Fixture& held) {
  return product(held.inputs["query"] / 4, held.inputs["key"], held.inputs["value"]);
}

}  // namespace

TEST_CASE("abc: with one slot for each token it is softmax attention", "[abc]") {
  constexpr std::int64_t length = 30;
  for (const Pattern pattern : {Pattern::causal, Pattern::bidirectional}) {
    Fixture slots = held("abc", {{"latents_per_head", count(length)}}, length, 8, pattern);
    slots.inputs.tensors["slots"] =
        at::full({length, length}, -std::numeric_limits<double>::infinity(), at::kDouble)
            .fill_diagonal_(0)
            .expand({2, 2, length, length})
            .contiguous();
    Fixture softmax("softmax", slots.problem);
    share(slots, softmax);
    check_equal(slots, softmax.output("composite"));
    for (const auto& [role, gradient] : slots.gradients("composite")) {
      CAPTURE(role);
      CHECK(at::isfinite(gradient).all().item<bool>());
    }
  }
}

TEST_CASE("cosformer: without distances that matter it is linear attention with relu",
          "[cosformer]") {
  const Fixture far = held("cosformer", {{"maximum_length", count(1'000'000'000)}}, 37, 8);
  const at::Tensor query = at::relu(far.inputs["query"]), key = at::relu(far.inputs["key"]);
  const at::Tensor weights = at::matmul(query, key.transpose(-2, -1)).tril();
  check_equal(far, at::matmul(weights, far.inputs["value"]) / (weights.sum(-1, true) + 1e-6));
  // Steps know of its reach, too.
  const Fixture near = held("cosformer", {{"maximum_length", count(20)}}, 20, 4);
  State state = near.empty_state();
  near.step("scan", state, 0, 20);
  CHECK_THROWS_AS(near.step("scan", state, 0, 1), UnsupportedError);
}

TEST_CASE("delta: a gate that stays open changes nothing, and equal channels are one gate",
          "[delta]") {
  const Fixture none = held("delta");
  Fixture scalar = held("delta", {{"gate", word("scalar")}});
  Fixture channel = held("delta", {{"gate", word("channel")}});
  share(none, scalar);
  share(none, channel);
  channel.inputs.tensors["gate"] = scalar.inputs["gate"].expand({2, 2, 53, 16}).contiguous();
  channel.parameters["a_log"].copy_(scalar.parameters["a_log"]);
  channel.parameters["bias"].copy_(scalar.parameters["bias"].expand({2, 16}));
  check_equal(channel, scalar.output("composite"));
  check_equal(scalar, none.output("composite"), false);
  scalar.inputs.tensors["gate"].fill_(-1000);
  channel.inputs.tensors["gate"].fill_(-1000);
  check_equal(scalar, none.output("composite"));
  check_equal(channel, none.output("composite"));
}

TEST_CASE("delta: a key that is written again gives the new value alone", "[delta]") {
  // beta about 1, every key the same: what was stored under it is erased.
  Fixture same = held("delta", {}, 20, 8);
  same.inputs.tensors["key"] = same.inputs["key"].narrow(2, 0, 1).expand({2, 2, 20, 8}).clone();
  same.inputs.tensors["query"] = same.inputs["key"].clone();
  same.inputs.tensors["beta"].fill_(60);
  const at::Tensor square = same.inputs["key"].square().sum(-1, true);
  const at::Tensor norm = square / (square + 1e-6);  // of a key divided by sqrt(|k|^2 + epsilon)
  const at::Tensor want = same.inputs["value"] * norm / std::sqrt(8.0);
  CHECK(relative_error(same.output("chunked"), want) < 1e-5);
}

TEST_CASE("delta, rwkv7: keys of norm 0 write nothing and have finite gradients",
          "[delta][rwkv7]") {
  for (const char* gate : {"none", "scalar", "channel", "rwkv7"}) {
    const bool delta = gate != std::string("rwkv7");
    Fixture blank = delta ? held("delta", {{"gate", word(gate)}}, 20, 8) : held(gate, {}, 20, 8);
    blank.inputs.tensors["key"].narrow(2, 5, 3).zero_();
    blank.inputs.tensors["query"].narrow(2, 9, 1).zero_();
    Fixture other = blank;
    other.inputs.tensors["value"] = blank.inputs["value"].clone();
    other.inputs.tensors["value"].narrow(2, 5, 3).fill_(1000);
    check_equal(other, blank.output("composite"));
    for (const auto& name : test::implementations_of(blank.entry.name)) {
      for (const auto& [role, gradient] : blank.gradients(name, at::kFloat)) {
        CAPTURE(gate, name, role);
        CHECK(at::isfinite(gradient).all().item<bool>());
      }
    }
  }
}

TEST_CASE("gla: with open gates it is linear attention without a normaliser", "[gla]") {
  Fixture open = held("gla");
  open.inputs.tensors["gate"].fill_(1000);
  check_equal(open, linear_product(open));
}

TEST_CASE("hgrn2: it is gated linear attention whose keys are one minus its forget gates",
          "[hgrn2]") {
  const Fixture own = held("hgrn2");
  Fixture gla = held("gla", {{"gate_temperature", 1.0}});
  share(own, gla);
  gla.inputs.tensors["query"] = at::silu(own.inputs["query"]);
  gla.inputs.tensors["key"] = at::sigmoid(-own.inputs["gate"]);
  check_equal(own, gla.output("composite"));
}

TEST_CASE("hgrn2: a constant value comes to be held, whatever the gates", "[hgrn2]") {
  // f S + (1 - f) v is a mean of what was written: with one value all rows tend to it.
  Fixture constant = held("hgrn2", {}, 400, 8);
  constant.inputs.tensors["value"].fill_(3);
  constant.inputs.tensors["query"].fill_(1);
  const double read = 8 * (1 / (1 + std::exp(-1.0))) / std::sqrt(8.0);
  const at::Tensor last = constant.output("chunked").select(2, 399);
  CHECK(relative_error(last, at::full_like(last, 3 * read)) < 1e-9);
}

TEST_CASE("linear: without epsilon the size of a feature does not matter", "[linear]") {
  // phi . dphi = 0, where dx = dphi min(phi, 1).
  const Fixture free = held("linear", {{"epsilon", 0.0}}, 70, 5);
  for (const auto& name : test::implementations_of("linear")) {
    CAPTURE(name);
    const auto gradients = free.gradients(name);
    const auto along = [&](const std::string& role) {
      const at::Tensor phi = at::elu(free.inputs[role]) + 1;
      return phi * gradients.at(role) / phi.clamp_max(1);
    };
    CHECK(along("query").sum(-1).abs().max().item<double>() < 1e-11);
    CHECK(along("key").sum({2, 3}).abs().max().item<double>() < 1e-11);
  }
}

TEST_CASE("mamba2: with the decay 1 it is linear attention without a normaliser", "[mamba2]") {
  Fixture still = held("mamba2");
  still.parameters["a_log"].fill_(-1000);  // A = 0
  still.parameters["skip"].zero_();
  const at::Tensor raw = still.inputs["time_step"] + still.parameters["bias"].view({1, 2, 1, 1});
  const at::Tensor step = at::log1p(at::exp(raw));
  check_equal(still,
              product(still.inputs["query"], still.inputs["key"], still.inputs["value"] * step));
}

TEST_CASE("mamba2: parameters are drawn in the ranges of the paper", "[mamba2]") {
  const Fixture drawn = held("mamba2", {}, 8, 4);
  const at::Tensor rate = drawn.parameters.at("a_log").exp();
  CHECK(rate.min().item<double>() >= 1);
  CHECK(rate.max().item<double>() <= 16);
  const at::Tensor step = at::log1p(drawn.parameters.at("bias").exp());
  CHECK(step.min().item<double>() >= 0.00099);
  CHECK(step.max().item<double>() <= 0.101);
}

TEST_CASE("retention: without decay it is linear attention without a normaliser", "[retention]") {
  const Fixture still = held("retention", {{"decay", word("fixed")}, {"gamma", 1.0}});
  check_equal(still, linear_product(still));
  // The first head of Lightning Attention does not forget either.
  const Fixture lightning = held("retention", {{"decay", word("fixed")}});
  CHECK(relative_error(lightning.output("chunked").select(1, 0),
                       linear_product(still).select(1, 0)) < 1e-12);
}

TEST_CASE("rwkv7: at a learning rate of 0 it is gated linear attention", "[rwkv7]") {
  Fixture still = held("rwkv7");
  Fixture gla = held("gla", {{"gate_temperature", 1.0}});
  share(still, gla);
  still.inputs.tensors["learning_rate"].fill_(-1000);
  still.parameters["replacement"].fill_(0.25);
  const at::Tensor bias = still.parameters["decay_bias"].unsqueeze(1);
  const at::Tensor decay = at::sigmoid(still.inputs["decay"] + bias) * std::exp(-0.5);
  gla.inputs.tensors["gate"] = -at::log(at::expm1(decay));  // sigmoid(it) = exp(-decay)
  gla.inputs.tensors["query"] = still.inputs["query"] * 4;
  gla.inputs.tensors["key"] = still.inputs["key"] * 0.75;
  check_equal(still, gla.output("composite"));
}

TEST_CASE("rwkv7: at a learning rate of 1 and without decay it is the delta rule", "[rwkv7]") {
  Fixture whole = held("rwkv7");
  Fixture delta = held("delta");
  share(whole, delta);
  whole.inputs.tensors["learning_rate"].fill_(1000);
  whole.inputs.tensors["decay"].fill_(-1000);
  whole.parameters["removal"].fill_(1);
  delta.inputs.tensors["beta"].fill_(1000);
  const auto norm = [&](const char* role) {
    return at::sqrt(whole.inputs[role].square().sum(-1, true) + 1e-6);
  };
  whole.inputs.tensors["query"] = whole.inputs["query"] / (4 * norm("query"));
  delta.inputs.tensors["value"] = whole.inputs["value"] * norm("key");
  check_equal(whole, delta.output("composite"));
  whole.inputs.tensors["decay"].fill_(1000);  // at most e^(-e^(-1/2)) is left, 0.545
  check_equal(whole, delta.output("composite"), false);
}

TEST_CASE("rwkv7: a removal key reads the state before the decay, and erases it by channel",
          "[rwkv7]") {
  // Two tokens: the second writes nothing, its value being 0.
  // It erases channel 0 by what its removal key finds in both channels.
  Fixture two = held("rwkv7", {{"epsilon", 1e-12}}, 2, 2);
  for (auto& [name, parameter] : two.parameters) parameter.fill_(name == "removal" ? 1 : 0);
  auto& in = two.inputs.tensors;
  in["key"].fill_(1);
  in["key"].select(2, 1).fill_(0.5);
  in["value"].fill_(2);
  in["value"].select(2, 1).zero_();
  in["decay"].fill_(1000);
  in["learning_rate"].fill_(-1000);
  in["learning_rate"].select(2, 1).select(-1, 0).fill_(1000);
  for (const std::int64_t channel : {0, 1}) {
    in["query"].zero_();
    in["query"].select(-1, channel).fill_(1);
    // The state before is 2 in all places; the removal key (1, 1) / sqrt(2) finds 4 / sqrt(2).
    const double left = 2 * std::exp(-std::exp(-0.5)) - (channel == 0 ? 2 : 0);
    for (const auto& name : test::implementations_of("rwkv7")) {
      CAPTURE(name, channel);
      const at::Tensor last = two.output(name).select(2, 1);
      CHECK(relative_error(last, at::full_like(last, left)) < 1e-9);
    }
  }
}

TEST_CASE("rwkv7: parameters are those of published code in a first layer", "[rwkv7]") {
  const Fixture drawn = held("rwkv7", {}, 8, 4);
  const auto at_ends = [&](const char* name) {
    const at::Tensor all = drawn.parameters.at(name).flatten();
    return std::pair(all[0].item<double>(), all[7].item<double>());
  };
  CHECK(at_ends("decay_bias").first == Approx(-8));
  CHECK(at_ends("decay_bias").second == Approx(3));
  CHECK(at_ends("rate_bias").first == Approx(-0.69));
  CHECK(at_ends("rate_bias").second == Approx(0.31));
  CHECK(at_ends("removal").first == Approx(0.76));
  CHECK(at_ends("removal").second == Approx(0.66));
  CHECK(at_ends("replacement").first == Approx(1.02));
}

}  // namespace attnbench
