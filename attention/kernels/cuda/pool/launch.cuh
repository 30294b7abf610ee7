// Host side of the whole pool's forward pass on the tensor cores: the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/pool/averages.cuh"
#include "attention/kernels/cuda/pool/forward.cuh"
#include "attention/kernels/cuda/pool/read.cuh"
#include "attention/kernels/cuda/recurrent/forward.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

/// How a problem is cut on this card, and what of the workspace is whose.
template <class T>
struct PoolSpace {
  ReadPlan reading;
  int segments, padded, stride;
  RecurrentState states;  ///< as PoolMerge wants them
  T* averages;
  float* normaliser;

  PoolSpace(Workspace& space, const WholePoolShape& shape)
      : reading(plan_reading(shape, card().multiprocessors, card().shared_bytes)),
        segments(average_segments(shape)),
        padded(static_cast<int>(round_up(shape.latents, read_latents))),
        stride(static_cast<int>(round_up(shape.value_dim, 8))) {
    const std::int64_t rows = shape.heads * shape.latents;
    states.sum = space.take<float>(rows * segments * shape.value_dim);
    states.total = space.take<float>(rows * segments);
    states.maximum = space.take<float>(rows * segments);
    averages = space.take<T>(shape.heads * padded * stride);
    normaliser = space.take<float>(rows);
  }
};

template <class T>
std::size_t pool_forward_bytes(const WholePoolSizes& sizes) {
  Workspace count;
  PoolSpace<T>(count, shape_of(sizes));
  return count.used();
}

/// The states of all segments, a group of latents at a time.
template <class T>
void launch_states(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                   const RecurrentState& states, int segments, Stream stream) {
  const WholePoolShape shape = shape_of(sizes);
  RecurrentArguments<T> a;
  a.values = arguments.values;
  a.mask = arguments.key_mask;
  a.mask_stride = arguments.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.kind = static_cast<int>(PoolQuery::weights);
  a.tracked = true;
  a.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  for (std::int64_t l0 = 0; l0 < shape.latents; l0 += pool_group) {
    const std::int64_t width = std::min<std::int64_t>(pool_group, shape.latents - l0);
    const std::int64_t before = shape.heads * segments * l0;
    a.key = arguments.scores;
    a.key.data += l0;
    a.borders = {states.sum + before * shape.value_dim, states.total + before,
                 states.maximum + before};
    recurrent_states<PoolFamily>(a, {shape.heads, shape.key_length, width, shape.value_dim},
                                 plan_states(shape, width, card().multiprocessors), stream);
  }
}

template <class T>
void pool_averages(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                   const ExactPool& pool, Stream stream) {
  const int segments = average_segments(pool.shape);
  launch_states(sizes, arguments, pool.states, segments, stream);
  PoolMerge<float> merge;
  merge.from = pool.states;
  merge.group = pool_group;
  merge.segments = segments;
  merge.latents = static_cast<int>(pool.shape.latents);
  merge.value_dim = static_cast<int>(pool.shape.value_dim);
  merge.heads = pool.shape.heads;
  merge.out = pool.averages;
  merge.normaliser = pool.normaliser;
  merge.minus_maximum = pool.minus_maximum;
  merge.gain = pool.gain;
  merge.lift = Operand<T>::lift;
  launch_merge(merge, stream);
}

template <class T>
void pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                  Stream stream, void* workspace, std::size_t bytes) {
  const WholePoolShape shape = shape_of(sizes);
  if (shape.heads == 0 || shape.length == 0 || shape.latents == 0 || shape.value_dim == 0) return;
  Workspace space(workspace, bytes);
  const PoolSpace<T> lent(space, shape);
  launch_states(sizes, arguments, lent.states, lent.segments, stream);

  PoolMerge<T> merge;
  merge.from = lent.states;
  merge.group = pool_group;
  merge.segments = lent.segments;
  merge.latents = static_cast<int>(shape.latents);
  merge.value_dim = static_cast<int>(shape.value_dim);
  merge.heads = shape.heads;
  merge.out = lent.averages;
  merge.padded = lent.padded;
  merge.stride = lent.stride;
  merge.normaliser = lent.normaliser;
  launch_merge(merge, stream);

  PoolRead<T> read;
  read.query = arguments.query;
  read.averages = lent.averages;
  if (sizes.query == PoolQuery::logits_plus_z) read.shift = lent.normaliser;
  read.out = arguments.out;
  read.heads = static_cast<int>(sizes.heads);
  read.length = static_cast<int>(shape.length);
  read.latents = merge.latents;
  read.value_dim = merge.value_dim;
  read.padded = lent.padded;
  read.stride = lent.stride;
  read.slices = lent.reading.slices;
  read.given = sizes.query == PoolQuery::weights;
  read.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  read.query_pieces = by_pieces(read.query, shape.latents);
  read.out_pieces = by_pieces(read.out, shape.value_dim);
  const dim3 grid(static_cast<unsigned>(shape.heads * read.slices),
                  static_cast<unsigned>(lent.reading.blocks));
  const std::size_t shared = read_bytes(shape.latents, lent.reading.columns);
  if (lent.reading.columns == 64) {
    launch(pool_read<T, 64>, grid, dim3(32 * read_warps), shared, stream, read);
  } else {
    launch(pool_read<T, 128>, grid, dim3(32 * read_warps), shared, stream, read);
  }
}

// The instances: cmake/cuda_instances.cmake makes a file of each.
#define ATTNBENCH_POOL_FORWARD(T)                                                            \
  template std::size_t pool_forward_bytes<T>(const WholePoolSizes&);                         \
  template void pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, Stream, \
                                void*, std::size_t);                                         \
  template void pool_averages<T>(const WholePoolSizes&, const WholePoolArguments<T>&,        \
                                 const ExactPool&, Stream);

}  // namespace attnbench::kernels::cuda
