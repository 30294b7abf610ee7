#include "attention/algorithms/lavo/state.hpp"

#include "attention/algorithms/lavo/fused.hpp"
#include "attention/algorithms/softmax/ring.hpp"

namespace attnbench::orthogonal_memory {
namespace {

using at::Tensor;

/// One token: its keys are the ring as it lies, so that nothing is copied.
Tensor step(const Call& call, State& state, Carry& carry, std::int64_t most) {
  Call one = call;
  take_into_rings(state, one.local);
  const std::int64_t slots = state["key"].size(2);
  const auto integers = at::TensorOptions(at::kLong).device(one.local.k.device());
  const Tensor age =
      (state.position - at::arange(one.local.key_length(), integers)).remainder(slots);
  const Tensor local = relative_token(one.local, call.bias, -age);
  one.local.key_mask = call.local.key_mask;
  if (most == in_kernels) {
    one.local.offset = 0;
    return fused_token(one, local, carry, state.position);
  }
  return token(one, local, carry, state.position);
}

Tensor several(Call call, State& state, Carry& carry, std::int64_t most) {
  if (!call.plain()) take_into_rings(state, call.local);
  if (most == in_kernels) return fused_causal(call, &carry, state.position);
  return causal(call, carry, state.position, most);
}

}  // namespace

State empty_state(std::int64_t batch, const Tensor& bases, bool dissected) {
  const Carry carry = empty_carry(batch, bases, dissected);
  State state;
  state.tensors = {{"memory", carry.u}, {"count", carry.count}};
  if (!dissected) return state;
  state.tensors["window_sum"] = carry.sum;
  state.tensors["window_count"] = carry.sum_count;
  return state;
}

Tensor continued(const Call& call, State& state, std::int64_t most) {
  const at::NoGradGuard no_grad;
  Carry carry{state["memory"], state["count"], {}, {}};
  if (!call.plain()) {
    carry.sum = state["window_sum"];
    carry.sum_count = state["window_count"];
  }
  const std::int64_t length = call.local.length();
  const Tensor output = !call.plain() && length == 1 ? step(call, state, carry, most)
                                                     : several(call, state, carry, most);
  state["memory"].copy_(carry.u);
  state["count"].copy_(carry.count);
  if (!call.plain()) {
    state["window_sum"].copy_(carry.sum);
    state["window_count"].copy_(carry.sum_count);
  }
  state.position += length;
  return output;
}

}  // namespace attnbench::orthogonal_memory
