// The forms of the gated state against the recurrence itself, and the identities between gates.
#include "attention/algorithms/gated_state/gated_state.hpp"
#include "attention/algorithms/causal_product/causal_product.hpp"
#include "attention/torch/draw.hpp"
#include "tests/attention/held.hpp"
#include "tests/support/catch.hpp"

namespace attnbench {
namespace {

using at::Tensor;
using gated_state::Call;
using test::relative_error;

Tensor gated_numbers(at::IntArrayRef shape, std::uint64_t seed) {
  return at::randn(shape, seeded_generator(seed, at::kCPU), at::kDouble);
}

/// Keys of norm 1; `gates` log decays per token, 0 for none.
Call gated_call(std::int64_t length, std::int64_t gates, bool erases) {
  constexpr std::int64_t rows = 7, width = 5;
  Call call;
  call.query = gated_numbers({2, 3, length, rows}, 1);
  call.key = gated_numbers({2, 3, length, rows}, 2);
  call.key = call.key / call.key.norm(2, {-1}, true);
  call.value = gated_numbers({2, 3, length, width}, 3);
  if (gates > 0) call.log_decay = -gated_numbers({2, 3, length, gates}, 4).abs();
  if (erases) call.beta = at::sigmoid(gated_numbers({2, 3, length, 1}, 5)) * 2;
  return call;
}

const std::vector<std::pair<std::int64_t, bool>> kinds{{0, false}, {1, false}, {7, false},
                                                       {0, true},  {1, true},  {7, true}};

}  // namespace

TEST_CASE("gated_state: chunks of any size equal the recurrence, gates of each kind") {
  for (const auto& [gates, erases] : kinds) {
    for (const std::int64_t length : {1, 15, 16, 17, 53}) {
      const Call call = gated_call(length, gates, erases);
      const Tensor want = gated_state::scan(call);
      for (const std::int64_t chunk : {1, 5, 16, 33, 64}) {
        CAPTURE(gates, erases, length, chunk);
        CHECK(relative_error(gated_state::chunked(call, chunk), want) < 1e-12);
      }
      CHECK(relative_error(gated_state::parallel(call), want) < 1e-12);
    }
  }
}

TEST_CASE("gated_state: the kernel equals the recurrence, from a state and without one") {
  for (const auto& [gates, erases] : kinds) {
    for (const std::int64_t length : {1, 31, 32, 33, 130}) {
      CAPTURE(gates, erases, length);
      const Call call = gated_call(length, gates, erases);
      CHECK(relative_error(gated_state::fused(call), gated_state::scan(call)) < 1e-12);
      const Tensor start = gated_numbers({2, 3, 7, 5}, 8);
      Tensor carried = start.clone(), want = start.clone();
      const Tensor y = gated_state::fused(call, carried);
      CHECK(relative_error(y, gated_state::scan(call, want)) < 1e-12);
      CHECK(relative_error(carried, want) < 1e-12);
    }
  }
}

TEST_CASE("gated_state: the kernel's gradients are those of the recurrence") {
  for (const auto& [kind_gates, kind_erases] : kinds) {
    const std::int64_t gates = kind_gates;
    const bool erases = kind_erases;
    CAPTURE(gates, erases);
    const auto gradients = [&](const auto& form) {
      Call call = gated_call(77, gates, erases);
      std::vector<Tensor*> inputs{&call.query, &call.key, &call.value};
      if (gates > 0) inputs.push_back(&call.log_decay);
      if (erases) inputs.push_back(&call.beta);
      std::vector<Tensor> leaves;
      for (Tensor* each : inputs) {
        *each = each->detach().requires_grad_(true);
        leaves.push_back(*each);
      }
      return torch::autograd::grad({form(call)}, leaves, {gated_numbers({2, 3, 77, 5}, 9)});
    };
    const auto want = gradients([](const Call& call) { return gated_state::scan(call); });
    const auto got = gradients([](const Call& call) { return gated_state::fused(call); });
    for (std::size_t i = 0; i < want.size(); ++i) {
      CAPTURE(i);
      CHECK(relative_error(got[i], want[i]) < 1e-12);
    }
  }
}

TEST_CASE("gated_state: columns of the state are read alike by every form") {
  Call call = gated_call(53, 7, false);
  call.query = gated_numbers({2, 3, 53, 5}, 6);
  call.reads_columns = true;
  const Tensor want = gated_state::scan(call);
  REQUIRE(want.size(3) == 7);
  for (const std::int64_t chunk : {1, 5, 16, 33, 64}) {
    CAPTURE(chunk);
    CHECK(relative_error(gated_state::chunked(call, chunk), want) < 1e-12);
  }
  // Against the definition: the rows of the state [D, Dv] that a query of Dv numbers meets.
  Tensor state = at::zeros({2, 3, 7, 5}, at::kDouble);
  for (std::int64_t t = 0; t < 53; ++t) {
    const auto row = [&](const Tensor& x) { return x.select(2, t); };
    state = state * row(call.log_decay).exp().unsqueeze(-1) +
            row(call.key).unsqueeze(-1) * row(call.value).unsqueeze(-2);
  }
  const Tensor last = at::matmul(state, call.query.select(2, 52).unsqueeze(-1)).squeeze(-1);
  CHECK(relative_error(want.select(2, 52), last) < 1e-12);
}

TEST_CASE("gated_state: identities between gates") {
  for (const auto& form : {+[](const Call& call) { return gated_state::scan(call); },
                           +[](const Call& call) { return gated_state::parallel(call); },
                           +[](const Call& call) { return gated_state::chunked(call, 8); },
                           +[](const Call& call) { return gated_state::fused(call); }}) {
    for (const bool erases : {false, true}) {
      const Call scalar = gated_call(53, 1, erases);
      Call channel = scalar;
      channel.log_decay = scalar.log_decay.expand({-1, -1, -1, 7}).contiguous();
      CHECK(relative_error(form(channel), form(scalar)) < 1e-12);
      Call still = scalar, plain = scalar;
      still.log_decay = at::zeros_like(scalar.log_decay);
      plain.log_decay = Tensor();
      CHECK(relative_error(form(still), form(plain)) < 1e-12);
    }
    // An erasure of nothing is a decayed product: retention, where the decay is fixed.
    for (const std::int64_t gates : {0, 1, 7}) {
      Call nothing = gated_call(53, gates, true);
      const Call kept = gated_call(53, gates, false);
      nothing.beta = at::zeros_like(nothing.beta);
      CHECK(relative_error(form(nothing), form(kept)) < 1e-12);
    }
    const Call linear = gated_call(53, 0, false);
    const Tensor product = causal_product::scan(linear.query, linear.key, linear.value, {});
    CHECK(relative_error(form(linear), product) < 1e-12);
  }
}

TEST_CASE("gated_state: gates that underflow within a chunk are right in float32") {
  // e^-60 per token is 0 in float32 after two; the tokens that follow must not be lost with it.
  for (const auto& [gates, erases] : kinds) {
    if (gates == 0) continue;
    Call call = gated_call(64, gates, erases);
    const Tensor place = at::arange(64, at::kDouble).view({1, 1, 64, 1});
    call.log_decay = at::where(place.remainder(9) == 3, call.log_decay - 60, call.log_decay / 50);
    const Tensor want = gated_state::scan(call);
    Call narrow = call;
    for (Tensor* each : {&narrow.query, &narrow.key, &narrow.value, &narrow.log_decay}) {
      *each = each->to(at::kFloat);
    }
    if (erases) narrow.beta = call.beta.to(at::kFloat);
    CAPTURE(gates, erases);
    CHECK(relative_error(gated_state::chunked(narrow, 64), want) < 2e-6);
    CHECK(relative_error(gated_state::parallel(narrow), want) < 2e-6);
    CHECK(relative_error(gated_state::scan(narrow), want) < 2e-6);
    CHECK(relative_error(gated_state::fused(narrow), want) < 2e-6);
  }
}

}  // namespace attnbench
