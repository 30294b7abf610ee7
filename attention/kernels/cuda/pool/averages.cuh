// The averages of the whole pool in fp32, which gradients of all kinds begin with.
#pragma once

#include "attention/kernels/cuda/recurrent/arguments.cuh"
#include "attention/kernels/cuda/pool/forward.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

constexpr int pool_square = 64;    // latents and columns of a block
constexpr int gather_tokens = 32;  // taken in at once

/// The averages and what weights are made with.
struct ExactPool {
  WholePoolShape shape;
  TokenSegments keys, queries;
  RecurrentState states;  ///< of whichever tokens are summed at the time, as PoolMerge wants them
  float *averages, *normaliser, *minus_maximum, *gain;  ///< [heads, latents (, value_dim)]
  float *top, *factor;                                  ///< [heads, length]

  static TokenSegments cut(const WholePoolShape& shape, std::int64_t tokens) {
    const std::int64_t squares = (shape.latents + pool_square - 1) / pool_square *
                                 ((shape.value_dim + pool_square - 1) / pool_square);
    return segments_of(tokens, gather_tokens, shape.heads * squares, card().multiprocessors);
  }
  /// With room for the states of so many segments.
  ExactPool(Workspace& space, const WholePoolShape& s, std::int64_t segments)
      : shape(s), keys(cut(s, s.key_length)), queries(cut(s, s.length)) {
    const std::int64_t rows = s.heads * s.latents, slots = rows * segments;
    states.sum = space.take<float>(slots * s.value_dim);
    states.total = space.take<float>(slots);
    states.maximum = space.take<float>(slots);
    averages = space.take<float>(rows * s.value_dim);
    normaliser = space.take<float>(rows);
    minus_maximum = space.take<float>(rows);
    gain = space.take<float>(rows);
    top = space.take<float>(s.heads * s.length);
    factor = space.take<float>(s.heads * s.length);
  }
  bool empty() const {
    return shape.heads == 0 || shape.length == 0 || shape.latents == 0 || shape.value_dim == 0;
  }
};

/// Segments whose states a group of latents leaves.
inline int average_segments(const WholePoolShape& shape) {
  const std::int64_t width = std::min<std::int64_t>(pool_group, shape.latents);
  return plan_states(shape, width, card().multiprocessors).segments;
}
/// The averages of a pool and what else latents have, to all but its `top` and `factor`, on the
/// tensor cores: T of 16 bits.
template <class T>
void pool_averages(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                   const ExactPool& pool, Stream stream);

}  // namespace attnbench::kernels::cuda
