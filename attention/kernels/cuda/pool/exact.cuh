// Host side of the whole pool in fp32 on the CUDA cores: its forward pass, and the gradients of all
// types of numbers. With the averages M, z of their weights w, p of the queries and g of results:
//   dM_l = sum_t p_{t,l} g_t,   dv_s = sum_l w_{s,l} dM_l,   dq_{t,l} = p_{t,l} (g_t.M_l -
//   g_t.y_t), dk_{s,l} = w_{s,l} (v_s.dM_l - u_l),
// u_l = M_l.dM_l or, where z_l is added to the queries' logits, sum_t p_{t,l} g_t.y_t.
#pragma once

#include "attention/kernels/cuda/pool/averages.cuh"
#include "attention/kernels/cuda/pool/gather.cuh"
#include "attention/kernels/cuda/pool/merge.cuh"
#include "attention/kernels/cuda/pool/product.cuh"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels::cuda {

/// And what only gradients need.
struct ExactGradients {
  float *results, *dots;  ///< y [heads, length, value_dim] and g.y [heads, length]
  float *grads, *less;    ///< dM [heads, latents, value_dim] and u [heads, latents]

  ExactGradients(Workspace& space, const WholePoolShape& s)
      : results(space.take<float>(s.heads * s.length * s.value_dim)),
        dots(space.take<float>(s.heads * s.length)),
        grads(space.take<float>(s.heads * s.latents * s.value_dim)),
        less(space.take<float>(s.heads * s.latents)) {}
};

template <class T>
void launch_gather(PoolGather<T> gather, const WholePoolShape& shape, const TokenSegments& cut,
                   Stream stream) {
  gather.latents = static_cast<int>(shape.latents);
  gather.value_dim = static_cast<int>(shape.value_dim);
  gather.segments = cut.segments;
  gather.segment_chunks = cut.chunks;
  const std::int64_t squares = (shape.latents + pool_square - 1) / pool_square *
                               ((shape.value_dim + pool_square - 1) / pool_square);
  launch(pool_gather<T>,
         dim3(static_cast<unsigned>(shape.heads * squares), static_cast<unsigned>(cut.segments)),
         dim3(256), gather_bytes, stream, gather);
}

template <class T>
void launch_product(const PoolProduct<T>& product, std::int64_t heads, Stream stream) {
  const int columns = (product.outer + pool_square - 1) / pool_square;
  const int rows = std::min((product.length + pool_square - 1) / pool_square, 65535);
  if (rows == 0 || columns == 0) return;
  launch(pool_product<T>, dim3(static_cast<unsigned>(heads * columns), static_cast<unsigned>(rows)),
         dim3(256), product_bytes, stream, product);
}

template <class T>
struct ExactLaunch {
  const WholePoolSizes& sizes;
  const WholePoolArguments<T>& arguments;
  const ExactPool& pool;
  Stream stream;

  int heads() const { return static_cast<int>(sizes.heads); }
  float scale() const { return static_cast<float>(sizes.scale * 1.4426950408889634); }
  bool given() const { return sizes.query == PoolQuery::weights; }
  bool with_normaliser() const { return sizes.query == PoolQuery::logits_plus_z; }
  PoolWeights of_queries() const {
    PoolWeights p;
    p.given = given();
    p.scale = scale();
    if (with_normaliser()) p.shift = pool.normaliser;
    p.top = pool.top;
    p.factor = pool.factor;
    return p;
  }
  PoolWeights of_scores() const {
    PoolWeights w;
    w.scale = scale();
    w.shift = pool.minus_maximum;
    w.gain = pool.gain;
    return w;
  }
  PoolMerge<float> merging(const TokenSegments& cut) const {
    PoolMerge<float> merge;
    merge.from = pool.states;
    merge.group = merge.latents = static_cast<int>(pool.shape.latents);
    merge.segments = cut.segments;
    merge.value_dim = static_cast<int>(pool.shape.value_dim);
    merge.heads = pool.shape.heads;
    return merge;
  }

  void average_keys() const {
    PoolGather<T> gather;
    gather.logits = arguments.scores;
    gather.columns = arguments.values;
    gather.mask = arguments.key_mask;
    gather.mask_stride = arguments.mask_stride;
    gather.heads = heads();
    gather.length = static_cast<int>(pool.shape.key_length);
    gather.own_maxima = true;
    gather.weights.scale = scale();
    gather.to = pool.states;
    launch_gather(gather, pool.shape, pool.keys, stream);
    PoolMerge<float> merge = merging(pool.keys);
    merge.out = pool.averages;
    merge.normaliser = pool.normaliser;
    merge.minus_maximum = pool.minus_maximum;
    merge.gain = pool.gain;
    launch_merge(merge, stream);
  }
  /// The averages, and the queries' maxima and sums.
  void average() const {
    average_keys();
    if (given()) return;
    PoolWeights weights = of_queries();
    launch_rows(weigh_rows<T>, arguments.query, weights, pool.top, pool.factor, heads(),
                static_cast<int>(pool.shape.length), static_cast<int>(pool.shape.latents));
  }
  /// A warp for each query; `given` ends with the number of rows.
  template <class... Parameters, class... Given>
  void launch_rows(void (*kernel)(Parameters...), const Given&... rest) const {
    const std::int64_t rows = pool.shape.heads * pool.shape.length;
    launch(kernel, dim3(static_cast<unsigned>((rows + 7) / 8)), dim3(256), 0, stream, rest...,
           rows);
  }
  /// Results to `out` or, where it is not null, to `wide`.
  void read(float* wide) const {
    PoolProduct<T> product;
    product.left = arguments.query;
    product.weights = of_queries();
    product.right = pool.averages;
    product.heads = heads();
    product.length = static_cast<int>(pool.shape.length);
    product.inner = static_cast<int>(pool.shape.latents);
    product.outer = static_cast<int>(pool.shape.value_dim);
    product.out = arguments.out;
    product.wide = wide;
    launch_product(product, pool.shape.heads, stream);
  }
  /// dM and u.
  void grads(const PrefixPoolGradients<T>& gradients, const ExactGradients& more) const {
    PoolGather<T> gather;
    gather.logits = arguments.query;
    gather.columns = gradients.d_out;
    gather.heads = heads();
    gather.length = static_cast<int>(pool.shape.length);
    gather.weights = of_queries();
    if (with_normaliser()) gather.by = more.dots;
    gather.to = pool.states;
    launch_gather(gather, pool.shape, pool.queries, stream);
    PoolMerge<float> merge = merging(pool.queries);
    merge.from.maximum = nullptr;
    merge.out = more.grads;
    merge.total = more.less;
    if (!with_normaliser()) merge.dotted = pool.averages;
    launch_merge(merge, stream);
  }
  /// What both gradients of logits have in common: rows of value_dim times a transposed matrix.
  PoolProduct<T> logit_gradient(const Rows<const T>& rows, const float* matrix, std::int64_t length,
                                const Rows<T>& out) const {
    PoolProduct<T> product;
    product.left = rows;
    product.weights.given = true;
    product.right = matrix;
    product.transposed = true;
    product.heads = heads();
    product.length = static_cast<int>(length);
    product.inner = static_cast<int>(pool.shape.value_dim);
    product.outer = static_cast<int>(pool.shape.latents);
    product.out = out;
    return product;
  }
};

inline std::int64_t key_segments(const WholePoolSizes& sizes) {
  return ExactPool::cut(shape_of(sizes), sizes.key_length).segments;
}
inline std::int64_t all_segments(const WholePoolSizes& sizes) {
  const std::int64_t queries = ExactPool::cut(shape_of(sizes), sizes.length).segments;
  return std::max(key_segments(sizes), queries);
}

template <class T>
std::size_t exact_pool_forward_bytes(const WholePoolSizes& sizes) {
  Workspace count;
  ExactPool(count, shape_of(sizes), key_segments(sizes));
  return count.used();
}

template <class T>
void exact_pool_forward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                        Stream stream, void* workspace, std::size_t bytes) {
  Workspace space(workspace, bytes);
  const ExactPool pool(space, shape_of(sizes), key_segments(sizes));
  if (pool.empty()) return;
  const ExactLaunch<T> run{sizes, arguments, pool, stream};
  run.average();
  run.read(nullptr);
}

template <class T>
std::size_t exact_pool_backward_bytes(const WholePoolSizes& sizes) {
  Workspace count;
  ExactPool(count, shape_of(sizes), all_segments(sizes));
  ExactGradients(count, shape_of(sizes));
  return count.used();
}

template <class T>
void exact_pool_backward(const WholePoolSizes& sizes, const WholePoolArguments<T>& arguments,
                         const PrefixPoolGradients<T>& gradients, Stream stream, void* workspace,
                         std::size_t bytes) {
  Workspace space(workspace, bytes);
  const ExactPool pool(space, shape_of(sizes), all_segments(sizes));
  const ExactGradients more(space, pool.shape);
  if (pool.empty()) return;
  const ExactLaunch<T> run{sizes, arguments, pool, stream};
  run.average();
  if (!run.given()) {
    run.read(more.results);
    run.launch_rows(dot_rows<T>, gradients.d_out, static_cast<const float*>(more.results),
                    more.dots, run.heads(), static_cast<int>(pool.shape.length),
                    static_cast<int>(pool.shape.value_dim));
  }
  run.grads(gradients, more);

  PoolProduct<T> queries =
      run.logit_gradient(gradients.d_out, pool.averages, pool.shape.length, gradients.d_query);
  if (!run.given()) {
    queries.grad_scale = static_cast<float>(sizes.scale);
    queries.logits = arguments.query;
    queries.own = run.of_queries();
    queries.less_of_row = more.dots;
  }
  launch_product(queries, pool.shape.heads, stream);

  PoolProduct<T> scores =
      run.logit_gradient(arguments.values, more.grads, pool.shape.key_length, gradients.d_scores);
  scores.mask = arguments.key_mask;
  scores.mask_stride = arguments.mask_stride;
  scores.grad_scale = static_cast<float>(sizes.scale);
  scores.logits = arguments.scores;
  scores.own = run.of_scores();
  scores.less_of_latent = more.less;
  launch_product(scores, pool.shape.heads, stream);

  PoolProduct<T> values;
  values.left = arguments.scores;
  values.weights = run.of_scores();
  values.mask = arguments.key_mask;
  values.mask_stride = arguments.mask_stride;
  values.right = more.grads;
  values.heads = run.heads();
  values.length = static_cast<int>(pool.shape.key_length);
  values.inner = static_cast<int>(pool.shape.latents);
  values.outer = static_cast<int>(pool.shape.value_dim);
  values.out = gradients.d_values;
  launch_product(values, pool.shape.heads, stream);
}

// The instances: cmake/cuda_instances.cmake makes a file of each.
#define ATTNBENCH_EXACT_POOL(T)                                                                    \
  template std::size_t exact_pool_forward_bytes<T>(const WholePoolSizes&);                         \
  template void exact_pool_forward<T>(const WholePoolSizes&, const WholePoolArguments<T>&, Stream, \
                                      void*, std::size_t);                                         \
  template std::size_t exact_pool_backward_bytes<T>(const WholePoolSizes&);                        \
  template void exact_pool_backward<T>(const WholePoolSizes&, const WholePoolArguments<T>&,        \
                                       const PrefixPoolGradients<T>&, Stream, void*, std::size_t);

}  // namespace attnbench::kernels::cuda
