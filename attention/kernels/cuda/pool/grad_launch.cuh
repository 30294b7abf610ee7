// Host side of the whole pool's gradients on the tensor cores: the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/pool/averages.cuh"
#include "attention/kernels/cuda/pool/grad_rows.cuh"
#include "attention/kernels/cuda/pool/grad_sums.cuh"

namespace attnbench::kernels::cuda {

/// How the queries' gradients are summed by segments.
inline TokenSegments grad_segments(const WholePoolSizes& sizes) {
  const std::int64_t groups = (sizes.latents + grad_latents - 1) / grad_latents;
  return segments_of(sizes.length, chunk_tokens, sizes.batch * sizes.heads * groups,
                     card().multiprocessors);
}

/// What of the workspace is whose.
template <class T>
struct GradSpace {
  TokenSegments cut;
  ExactPool pool;
  int padded, width;
  T *averages, *grads;  ///< in 16 bits, see RoundedRows
  float *average_units, *grad_units;
  float *wide_grads, *less;
  float *rest_of_tiles = nullptr, *rest = nullptr;  ///< see PoolGrads

  GradSpace(Workspace& space, const WholePoolSizes& sizes)
      : cut(grad_segments(sizes)),
        pool(space, shape_of(sizes), std::max(cut.segments, average_segments(shape_of(sizes)))),
        padded(static_cast<int>(round_up(sizes.latents, grad_latents))),
        width(sizes.value_dim <= 64 ? 64 : 128) {
    const std::int64_t heads = pool.shape.heads, rows = heads * sizes.latents;
    averages = space.take<T>(heads * padded * width);
    grads = space.take<T>(heads * padded * width);
    average_units = space.take<float>(heads * padded);
    grad_units = space.take<float>(heads * padded);
    wide_grads = space.take<float>(rows * sizes.value_dim);
    less = space.take<float>(rows);
    if (sizes.query != PoolQuery::logits_plus_z) return;
    const std::int64_t tiles = (sizes.length + chunk_tokens - 1) / chunk_tokens;
    rest_of_tiles = space.take<float>(rows * tiles);
    rest = space.take<float>(rows);
  }
};

template <class T>
std::size_t pool_backward_bytes(const WholePoolSizes& sizes) {
  Workspace count;
  GradSpace<T>(count, sizes);
  return count.used();
}

template <class T>
void launch_rounding(const GradSpace<T>& lent, const float* from, T* to, float* units,
                     const float* dotted, Stream stream) {
  RoundedRows<T> round;
  round.from = from;
  round.to = to;
  round.units = units;
  round.dotted = dotted;
  round.rest = lent.rest;
  round.dots = lent.less;
  round.latents = static_cast<int>(lent.pool.shape.latents);
  round.value_dim = static_cast<int>(lent.pool.shape.value_dim);
  round.padded = lent.padded;
  round.width = lent.width;
  launch(round_rows<T>,
         dim3(static_cast<unsigned>(lent.pool.shape.heads), static_cast<unsigned>(lent.padded / 8)),
         dim3(256), 0, stream, round);
}

template <class T, int Dim, bool Keys>
void launch_grad_rows(const PoolGrads<T>& a, std::int64_t heads, Stream stream) {
  const int tiles = std::min((a.length + chunk_tokens - 1) / chunk_tokens, 65535);
  if (tiles == 0) return;
  launch(pool_grad_rows<T, Dim, Keys>,
         dim3(static_cast<unsigned>(heads), static_cast<unsigned>(tiles)), dim3(grad_threads),
         GradRowsLayout<Dim>::bytes, stream, a);
}

template <class T, int Dim>
void launch_grads(PoolGrads<T> a, const WholePoolSizes& sizes,
                  const WholePoolArguments<T>& arguments, const PrefixPoolGradients<T>& gradients,
                  const GradSpace<T>& lent, Stream stream) {
  const std::int64_t heads = lent.pool.shape.heads;
  a.logits = arguments.query;
  a.rows = gradients.d_out;
  a.d_logits = gradients.d_query;
  a.length = static_cast<int>(sizes.length);
  a.given = sizes.query == PoolQuery::weights;
  if (sizes.query == PoolQuery::logits_plus_z) a.shift = lent.pool.normaliser;
  a.matrix = lent.averages;
  a.units = lent.average_units;
  a.top = lent.pool.top;
  a.factor = lent.pool.factor;
  a.rest = lent.rest_of_tiles;
  a.segments = lent.cut.segments;
  a.segment_tokens = lent.cut.chunks * chunk_tokens;
  a.to = lent.pool.states;
  a.to.maximum = nullptr;
  if (a.rest == nullptr) a.to.total = nullptr;
  a.logit_pieces = by_pieces(a.logits, sizes.latents);
  a.row_pieces = by_pieces(a.rows, sizes.value_dim);
  a.d_logit_pieces = by_pieces(a.d_logits, sizes.latents);
  launch_grad_rows<T, Dim, false>(a, heads, stream);
  launch(pool_grad_sums<T, Dim>,
         dim3(static_cast<unsigned>(heads * (lent.padded / grad_latents)),
              static_cast<unsigned>(a.segments)),
         dim3(grad_threads), GradSumsLayout<Dim>::bytes, stream, a);

  PoolMerge<float> merge;
  merge.from = a.to;
  merge.group = merge.latents = a.latents;
  merge.segments = a.segments;
  merge.value_dim = a.value_dim;
  merge.heads = heads;
  merge.out = lent.wide_grads;
  merge.total = lent.rest;
  launch_merge(merge, stream);
  launch_rounding(lent, lent.wide_grads, lent.grads, lent.grad_units, lent.pool.averages, stream);

  a.logits = arguments.scores;
  a.rows = arguments.values;
  a.d_logits = gradients.d_scores;
  a.d_rows = gradients.d_values;
  a.mask = arguments.key_mask;
  a.mask_stride = arguments.mask_stride;
  a.length = static_cast<int>(sizes.key_length);
  a.shift = lent.pool.minus_maximum;
  a.gain = lent.pool.gain;
  a.less = lent.less;
  a.matrix = lent.grads;
  a.units = lent.grad_units;
  a.logit_pieces = by_pieces(a.logits, sizes.latents);
  a.row_pieces = by_pieces(a.rows, sizes.value_dim);
  a.d_logit_pieces = by_pieces(a.d_logits, sizes.latents);
  a.d_row_pieces = by_pieces(a.d_rows, sizes.value_dim);
  launch_grad_rows<T, Dim, true>(a, heads, stream);
}

template <class T>
void pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                   const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                   std::size_t bytes) {
  Workspace space(workspace, bytes);
  const GradSpace<T> lent(space, sizes);
  if (lent.pool.empty()) return;
  pool_averages(sizes, arguments, lent.pool, stream);
  launch_rounding<T>(lent, lent.pool.averages, lent.averages, lent.average_units, nullptr, stream);
  PoolGrads<T> a;
  a.heads = static_cast<int>(sizes.heads);
  a.latents = static_cast<int>(sizes.latents);
  a.value_dim = static_cast<int>(sizes.value_dim);
  a.grad_scale = static_cast<float>(sizes.scale);
  a.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  if (lent.width == 64) return launch_grads<T, 64>(a, sizes, arguments, gradients, lent, stream);
  launch_grads<T, 128>(a, sizes, arguments, gradients, lent, stream);
}

// The instances: cmake/cuda_instances.cmake makes a file of each.
#define ATTNBENCH_POOL_BACKWARD(T)                                                    \
  template std::size_t pool_backward_bytes<T>(const WholePoolSizes&);                 \
  template void pool_backward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, \
                                 const PrefixPoolGradients<T>&, Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
