// Softmax in tiles: causal, with slots on either side, and pooling keys and values.
#include <algorithm>

#include "attention/kernels/softmax.hpp"
#include "attention/kernels/softmax_pool.hpp"
#include "tests/benchmarks/counts/calls.hpp"

namespace attnbench::counts {
namespace {

/// `queries` over `keys`, all of them.
SoftmaxSizes sizes_of(std::int64_t queries, std::int64_t keys) {
  SoftmaxSizes sizes;
  sizes.heads = sizes.kv_heads = heads;
  sizes.length = queries;
  sizes.key_length = keys;
  sizes.head_dim = sizes.value_dim = dim;
  sizes.scale = 0.125;
  return sizes;
}

template <class T>
void softmax(const SoftmaxSizes& sizes, bool backward) {
  const Array<T> q(sizes.length, dim), k(sizes.key_length, dim), v(sizes.key_length, dim);
  const Array<T> out(sizes.length, dim), d_out(sizes.length, dim), dq(sizes.length, dim);
  const Array<T> dk(sizes.key_length, dim), dv(sizes.key_length, dim);
  const auto lse = block_of<float>(heads * sizes.length);
  SoftmaxArguments<T> arguments;
  arguments.q = q;
  arguments.k = k;
  arguments.v = v;
  arguments.out = out;
  arguments.lse = lse.get();
  SoftmaxGradients<T> gradients;
  gradients.d_out = d_out;
  gradients.dq = dq;
  gradients.dk = dk;
  gradients.dv = dv;
  SerialTeam team;
  const std::size_t bytes =
      std::max(softmax_forward_bytes<T>(sizes, 1), softmax_backward_bytes<T>(sizes, 1));
  const auto space = space_of(bytes);
  softmax_forward(sizes, arguments, team, space.get(), bytes);
  count([&] {
    if (backward) {
      softmax_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      softmax_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

template <class T>
void causal(const Tokens& tokens, bool backward) {
  SoftmaxSizes sizes = sizes_of(tokens.length, tokens.length);
  sizes.right = 0;
  softmax<T>(sizes, backward);
}

void pool(const Tokens& tokens) {
  const SoftmaxSizes sizes = sizes_of(latents, tokens.length);
  const Array<float> q(latents, dim), k(tokens.length, dim), v(tokens.length, dim);
  const Array<float> out(latents, dim), keys_out(latents, dim);
  SoftmaxPoolArguments<float> arguments;
  arguments.q = q;
  arguments.k = k;
  arguments.v = v;
  arguments.out = out;
  arguments.keys_out = keys_out;
  SerialTeam team;
  const std::size_t bytes = softmax_pool_bytes<float>(sizes, 1);
  const auto space = space_of(bytes);
  count([&] { softmax_pool(sizes, arguments, team, space.get(), bytes); });
}

}  // namespace

std::vector<Case> softmax_cases() {
  const auto into_slots = [](const Tokens& tokens) { return sizes_of(latents, tokens.length); };
  const auto of_slots = [](const Tokens& tokens) { return sizes_of(tokens.length, latents); };
  return {{"softmax.bfloat16.backward", two_lengths, [](auto& of) { causal<BFloat16>(of, true); }},
          {"softmax.bfloat16.forward", two_lengths, [](auto& of) { causal<BFloat16>(of, false); }},
          {"softmax.float32.backward", two_lengths, [](auto& of) { causal<float>(of, true); }},
          {"softmax.float32.forward", two_lengths, [](auto& of) { causal<float>(of, false); }},
          {"softmax_into_slots.bfloat16.forward",
           {512},
           [=](auto& of) { softmax<BFloat16>(into_slots(of), false); }},
          {"softmax_into_slots.float32.backward",
           {512},
           [=](auto& of) { softmax<float>(into_slots(of), true); }},
          {"softmax_into_slots.float32.forward", two_lengths,
           [=](auto& of) { softmax<float>(into_slots(of), false); }},
          {"softmax_of_slots.bfloat16.forward",
           {512},
           [=](auto& of) { softmax<BFloat16>(of_slots(of), false); }},
          {"softmax_of_slots.float32.backward",
           {512},
           [=](auto& of) { softmax<float>(of_slots(of), true); }},
          {"softmax_of_slots.float32.forward", two_lengths,
           [=](auto& of) { softmax<float>(of_slots(of), false); }},
          {"softmax_pool.float32.forward", two_lengths, pool}};
}

}  // namespace attnbench::counts
