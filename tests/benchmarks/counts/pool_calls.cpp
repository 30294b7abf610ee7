// LAVO's memory and Linformer's projection.
#include <algorithm>

#include "attention/kernels/lavo.hpp"
#include "attention/kernels/sequence_projection.hpp"
#include "tests/benchmarks/counts/calls.hpp"

namespace attnbench::counts {
namespace {

void lavo(const Tokens& of, bool backward) {
  LavoSizes sizes;
  sizes.heads = heads;
  sizes.length = sizes.memory_length = of.length;
  sizes.bases = latents;
  sizes.head_dim = dim;
  sizes.scale = 0.125;
  const Array<float> query(of.length, dim), tokens(of.length, dim), out(of.length, dim);
  const Array<float> d_out(of.length, dim), d_query(of.length, dim), d_tokens(of.length, dim);
  const Array<float> bases(latents, dim), d_bases(latents, dim);
  LavoArguments<float> arguments;
  arguments.query = query;
  arguments.tokens = tokens;
  arguments.bases = bases;
  arguments.out = out;
  const LavoGradients<float> gradients{d_out, d_query, d_tokens, d_bases.room.get()};
  SerialTeam team;
  const std::size_t bytes =
      std::max(lavo_forward_bytes<float>(sizes, 1), lavo_backward_bytes<float>(sizes, 1));
  const auto space = space_of(bytes);
  count([&] {
    if (backward) {
      lavo_backward(sizes, arguments, gradients, team, space.get(), bytes);
    } else {
      lavo_forward(sizes, arguments, team, space.get(), bytes);
    }
  });
}

template <class T>
void projection(const Tokens& of) {
  SequenceProjectionSizes sizes;
  sizes.heads = heads;
  sizes.length = of.length;
  sizes.slots = latents;
  sizes.dim = dim;
  const Array<T> tokens(of.length, dim);
  const Array<float> weights(latents, of.length), out(latents, dim);
  SequenceProjectionArguments<T> arguments;
  arguments.tokens = tokens;
  arguments.weights = weights;
  arguments.out = out;
  SerialTeam team;
  const std::size_t bytes = sequence_projection_bytes<T>(sizes, 1);
  const auto space = space_of(bytes);
  count([&] { sequence_projection(sizes, arguments, team, space.get(), bytes); });
}

}  // namespace

std::vector<Case> pool_cases() {
  return {{"lavo.float32.backward", two_lengths, [](auto& of) { lavo(of, true); }},
          {"lavo.float32.forward", two_lengths, [](auto& of) { lavo(of, false); }},
          {"sequence_projection.bfloat16.forward", {512}, projection<BFloat16>},
          {"sequence_projection.float32.forward", two_lengths, projection<float>}};
}

}  // namespace attnbench::counts
