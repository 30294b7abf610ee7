// Host side of the whole pool of logits that are made of tokens: the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/pool/directed.cuh"
#include "attention/kernels/cuda/pool/forward.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

template <class T>
struct DirectedSpace {
  int tile;  ///< columns of a tile of tokens, directions or values
  int padded, stride, slices, row_blocks;
  std::int64_t direction_heads;
  TokenSegments cut;
  T *upper, *lower, *averages;
  float* normaliser;
  RecurrentState states;

  /// `shared`: all heads have the same directions.
  DirectedSpace(Workspace& space, const WholePoolSizes& sizes, bool shared)
      : tile(sizes.directions.dim <= 64 && sizes.value_dim <= 64 ? 64 : 128),
        padded(static_cast<int>(round_up(sizes.latents, directed_columns))),
        stride(static_cast<int>(round_up(sizes.value_dim, 8))),
        slices(static_cast<int>((sizes.value_dim + tile - 1) / tile)),
        row_blocks(static_cast<int>((sizes.latents + directed_rows - 1) / directed_rows)),
        direction_heads(shared ? 1 : sizes.heads),
        cut(segments_of(sizes.key_length, directed_columns,
                        sizes.batch * sizes.heads * row_blocks * slices, card().multiprocessors)) {
    const std::int64_t heads = sizes.batch * sizes.heads, rows = heads * sizes.latents;
    upper = space.take<T>(direction_heads * padded * tile);
    lower = space.take<T>(direction_heads * padded * tile);
    averages = space.take<T>(heads * padded * stride);
    normaliser = space.take<float>(rows);
    states.sum = space.take<float>(rows * cut.segments * sizes.value_dim);
    states.total = space.take<float>(rows * cut.segments);
    states.maximum = space.take<float>(rows * cut.segments);
  }
};

template <class T>
std::size_t directed_pool_forward_bytes(const WholePoolSizes& sizes) {
  Workspace count;
  DirectedSpace<T>(count, sizes, false);
  return count.used();
}

template <class T, int Dim>
void launch_directed(DirectedPool<T> a, const WholePoolSizes& sizes,
                     const WholePoolArguments<T>& arguments, const DirectedSpace<T>& lent,
                     Stream stream) {
  constexpr int threads = 32 * read_warps;
  const std::int64_t heads = sizes.batch * sizes.heads;
  a.tokens = arguments.scores;
  a.values = arguments.values;
  a.length = static_cast<int>(sizes.key_length);
  a.token_pieces = by_pieces(a.tokens, a.dim);
  a.value_pieces = by_pieces(a.values, a.value_dim);
  launch(pool_directed<T, Dim, false>,
         dim3(static_cast<unsigned>(heads * lent.row_blocks * lent.slices),
              static_cast<unsigned>(lent.cut.segments)),
         dim3(threads), DirectedLayout<T, Dim, false>::bytes, stream, a);

  PoolMerge<T> merge;
  merge.from = lent.states;
  merge.group = directed_rows;
  merge.segments = lent.cut.segments;
  merge.latents = a.latents;
  merge.value_dim = a.value_dim;
  merge.heads = heads;
  merge.out = lent.averages;
  merge.padded = lent.padded;
  merge.stride = lent.stride;
  merge.ordered = true;
  merge.normaliser = lent.normaliser;
  launch_merge(merge, stream);

  a.tokens = arguments.query;
  a.length = static_cast<int>(sizes.length);
  a.averages = lent.averages;
  if (sizes.query == PoolQuery::logits_plus_z) a.shift = lent.normaliser;
  a.out_pieces = by_pieces(a.out, a.value_dim);
  const std::int64_t tiles = (sizes.length + directed_rows - 1) / directed_rows;
  for (std::int64_t tile = 0; tile < tiles; tile += 65535) {
    const std::int64_t skipped = tile * directed_rows;
    DirectedPool<T> part = a;
    part.tokens.data += skipped * a.tokens.row_stride;
    part.out.data += skipped * a.out.row_stride;
    part.length = static_cast<int>(sizes.length - skipped);
    launch(pool_directed<T, Dim, true>,
           dim3(static_cast<unsigned>(heads * lent.slices),
                static_cast<unsigned>(std::min<std::int64_t>(tiles - tile, 65535))),
           dim3(threads), DirectedLayout<T, Dim, true>::bytes, stream, part);
  }
}

template <class T>
void directed_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                           Stream stream, void* workspace, std::size_t bytes) {
  if (sizes.batch * sizes.heads == 0 || sizes.length == 0 || sizes.latents == 0 ||
      sizes.value_dim == 0) {
    return;
  }
  Workspace space(workspace, bytes);
  const bool shared = arguments.directions.head_stride == 0;
  const DirectedSpace<T> lent(space, sizes, shared);
  DirectedPool<T> a;
  a.upper = lent.upper;
  a.lower = lent.lower;
  a.direction_stride = shared ? 0 : std::int64_t{lent.padded} * lent.tile;
  a.out = arguments.out;
  a.to = lent.states;
  a.mask = arguments.key_mask;
  a.mask_stride = arguments.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.all_heads = static_cast<int>(sizes.batch * sizes.heads);
  a.latents = static_cast<int>(sizes.latents);
  a.value_dim = static_cast<int>(sizes.value_dim);
  a.dim = static_cast<int>(sizes.directions.dim);
  a.padded = lent.padded;
  a.stride = lent.stride;
  a.slices = lent.slices;
  a.segments = lent.cut.segments;
  a.segment_chunks = lent.cut.chunks;
  a.rows_of_blocks = lent.row_blocks;
  constexpr double log2_e = 1.4426950408889634;
  a.scale = static_cast<float>(sizes.scale * log2_e);
  if (sizes.directions.half_square) {
    a.square = static_cast<float>(sizes.scale * sizes.scale * log2_e / 2);
  }
  constexpr int threads = 256;
  const std::int64_t numbers = lent.direction_heads * lent.padded * lent.tile;
  launch(split_directions<T>, dim3(static_cast<unsigned>((numbers + threads - 1) / threads)),
         dim3(threads), 0, stream, arguments.directions, lent.upper, lent.lower, a.latents, a.dim,
         lent.padded, lent.tile, numbers);
  if (lent.tile == 64) return launch_directed<T, 64>(a, sizes, arguments, lent, stream);
  launch_directed<T, 128>(a, sizes, arguments, lent, stream);
}

// The instances: cmake/cuda_instances.cmake makes a file of each.
#define ATTNBENCH_DIRECTED_POOL_FORWARD(T)                                                    \
  template std::size_t directed_pool_forward_bytes<T>(const WholePoolSizes&);                 \
  template void directed_pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, \
                                         Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
