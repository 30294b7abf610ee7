#include "attention/kernels/cpu/softmax/backward.hpp"
#include "attention/kernels/cpu/softmax/bfloat16.hpp"
#include "attention/kernels/cpu/softmax/gradient_items.hpp"
#include "attention/kernels/softmax.hpp"

namespace attnbench::kernels {
namespace {

/// What one worker holds: a tile of keys with its gradients, a tile of queries, their scores.
template <class R>
struct Scratch {
  std::int64_t dim, value_dim;
  R *keys, *keys_transposed, *values_transposed, *dk, *dv;
  R *q, *d_out;  // where they cannot be used as they lie
  R *weights, *d_scores;

  Scratch(Workspace& space, const SoftmaxSizes& sizes)
      : dim(padded(sizes.head_dim, sizeof(R))),
        value_dim(padded(sizes.value_dim, sizeof(R))),
        keys(space.take<R>(gradient_keys * dim)),
        keys_transposed(space.take<R>(dim * gradient_keys)),
        values_transposed(space.take<R>(value_dim * gradient_keys)),
        dk(space.take<R>(gradient_keys * dim)),
        dv(space.take<R>(gradient_keys * value_dim)),
        q(space.take<R>(gradient_queries * dim)),
        d_out(space.take<R>(gradient_queries * value_dim)),
        weights(space.take<R>(gradient_queries * gradient_keys)),
        d_scores(space.take<R>(gradient_queries * gradient_keys)) {}
};

template <class R>
std::size_t scratch_bytes(const SoftmaxSizes& sizes) {
  Workspace count;
  Scratch<R>(count, sizes);
  return count.used();
}

/// A tile of queries in rows of whole vectors: as they lie, or packed into `scratch`.
template <class T>
ATTNBENCH_INLINE const Compute<T>* query_rows(const T* from, std::int64_t row_stride,
                                              std::int64_t rows, std::int64_t width,
                                              Compute<T>* scratch, std::int64_t stride) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (rows == gradient_queries && lies_packed(from, row_stride, width)) return from;
  }
  pack(from, row_stride, rows, width, scratch, stride);
  std::fill_n(scratch + rows * stride, (gradient_queries - rows) * stride, Compute<T>{0});
  return scratch;
}

/// One tile of keys against all queries that see it.
template <class T, int Bytes>
ATTNBENCH_INLINE void backward_keys(const BackwardCall<T>& call, const Scratch<Compute<T>>& s,
                                    const BackwardItem& item, std::int64_t s0) {
  const auto [b, kv, part] = item;
  using R = Compute<T>;
  const auto& sizes = call.sizes;
  const std::int64_t group = sizes.heads / sizes.kv_heads;
  const std::int64_t count = std::min(gradient_keys, sizes.key_length - s0);
  const T* const k = call.in.k.at(b, kv, s0);
  const T* const v = call.in.v.at(b, kv, s0);
  const std::uint8_t* const mask =
      call.in.key_mask == nullptr ? nullptr : call.in.key_mask + b * call.in.mask_stride + s0;
  pack(k, call.in.k.row_stride, count, sizes.head_dim, s.keys, s.dim);
  pack_transposed<T, Bytes>(k, call.in.k.row_stride, count, sizes.head_dim,
                            static_cast<R>(sizes.scale * log2_of_e), s.keys_transposed,
                            gradient_keys);
  pack_transposed<T, Bytes>(v, call.in.v.row_stride, count, sizes.value_dim, R{1},
                            s.values_transposed, gradient_keys);
  std::fill_n(s.dk, gradient_keys * s.dim, R{0});
  std::fill_n(s.dv, gradient_keys * s.value_dim, R{0});
  const BiasRange& range = call.shared.range;
  const R* const bias = range.any() ? call.shared.bias + range.centre() : nullptr;
  R* const d_bias =
      call.shared.d_bias + item.index(sizes, call.shared.parts) * range.size() + range.centre();
  const GradientKeys<R> keys{s0, count, s.keys, s.keys_transposed, s.values_transposed, s.dk, s.dv};
  const std::int64_t first = seeing_queries(sizes, s0).begin;
  const std::int64_t last = seeing_queries(sizes, s0 + count - 1).end;
  for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
    const std::int64_t head = b * sizes.heads + h;
    for (std::int64_t t0 = first / gradient_queries * gradient_queries; t0 < last;
         t0 += gradient_queries) {
      const std::int64_t rows = std::min(gradient_queries, sizes.length - t0);
      MemoryOnTheWay next(fetching_products * (sizes.head_dim + sizes.value_dim));
      if (const std::int64_t t1 = t0 + gradient_queries; t1 < last) {
        const std::int64_t more = std::min(gradient_queries, sizes.length - t1);
        next.add(call.in.q, b, h, t1, more, sizes.head_dim);
        next.add(call.out.d_out, b, h, t1, more, sizes.value_dim);
        next.add(call.shared.dq_of(head, part, t1), more, s.dim);
      }
      const GradientQueries<R> queries{
          t0,
          rows,
          query_rows(call.in.q.at(b, h, t0), call.in.q.row_stride, rows, sizes.head_dim, s.q,
                     s.dim),
          query_rows(call.out.d_out.at(b, h, t0), call.out.d_out.row_stride, rows, sizes.value_dim,
                     s.d_out, s.value_dim),
          s.dim,
          s.value_dim,
          call.in.lse + head * sizes.length + t0,
          call.shared.delta + head * sizes.length + t0,
          call.shared.dq_of(head, part, t0),
          &next};
      differentiate_tile<R, Bytes>(sizes, mask, bias, queries, keys, s.weights, s.d_scores, d_bias);
    }
  }
  write_keys(call, item, s0, count, s.dk, s.dim, s.dv, s.value_dim);
}

template <class T, int Bytes>
ATTNBENCH_INLINE void backward_item(const BackwardCall<T>& call, void* scratch,
                                    const BackwardItem& item) {
  Workspace space(scratch, scratch_bytes<Compute<T>>(call.sizes));
  const Scratch<Compute<T>> s(space, call.sizes);
  const std::int64_t table = call.shared.range.size();
  std::fill_n(call.shared.d_bias + item.index(call.sizes, call.shared.parts) * table, table,
              Compute<T>{0});
  const std::int64_t step = call.shared.parts * gradient_keys;
  for (std::int64_t s0 = item.part * gradient_keys; s0 < call.sizes.key_length; s0 += step) {
    backward_keys<T, Bytes>(call, s, item, s0);
  }
}

template <class T>
void backward_baseline(const BackwardCall<T>& call, void* scratch, const BackwardItem& item) {
  backward_item<T, baseline_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX2 void backward_avx2(const BackwardCall<T>& call, void* scratch,
                                  const BackwardItem& item) {
  backward_item<T, avx2_bytes>(call, scratch, item);
}
template <class T>
ATTNBENCH_AVX512 void backward_avx512(const BackwardCall<T>& call, void* scratch,
                                      const BackwardItem& item) {
  backward_item<T, avx512_bytes>(call, scratch, item);
}

template <class T>
BackwardEngine<T> engine_of(const SoftmaxSizes& sizes) {
  using R = Compute<T>;
  if constexpr (std::is_same_v<T, BFloat16>) {
    if (bfloat16_takes(sizes)) return softmax_backward_bfloat16(sizes);
  }
  return {{gradient_queries, gradient_keys, padded(sizes.head_dim, sizeof(R)), false},
          scratch_bytes<R>(sizes),
          pick(backward_baseline<T>, backward_avx2<T>, backward_avx512<T>)};
}

}  // namespace

template <class T>
std::size_t softmax_backward_bytes(const SoftmaxSizes& sizes, int threads) {
  const BackwardEngine<T> engine = engine_of<T>(sizes);
  Workspace count;
  GradientShared<Compute<T>>(count, sizes, engine.layout);
  return count.used() + static_cast<std::size_t>(threads) * engine.scratch_bytes;
}

template <class T>
void softmax_backward(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                      const SoftmaxGradients<T>& gradients, ThreadTeam& team, void* workspace,
                      std::size_t workspace_bytes) {
  const BackwardEngine<T> engine = engine_of<T>(sizes);
  Workspace space(workspace, workspace_bytes);
  const BackwardCall<T> call{
      sizes, arguments, gradients, engine.layout, {space, sizes, engine.layout}};
  const auto each = static_cast<std::int64_t>(engine.scratch_bytes);
  std::byte* const scratch = space.take<std::byte>(each * team.size());
  const std::int64_t kv_heads = sizes.batch * sizes.kv_heads;
  const std::int64_t runs = (sizes.length + run_length - 1) / run_length;
  const auto run_of = [&](std::int64_t index) {
    const std::int64_t head = index / runs;
    const std::int64_t begin = index % runs * run_length;
    return QueryRun{head / sizes.heads, head % sizes.heads, begin,
                    std::min(begin + run_length, sizes.length)};
  };
  bias_table(call.shared.range, arguments.bias, false, call.shared.bias);
  const std::int64_t all_runs = sizes.batch * sizes.heads * runs;
  share(team, all_runs, [&](int, std::int64_t index) { prepare_gradients(call, run_of(index)); });
  share(team, kv_heads * call.shared.parts, [&](int worker, std::int64_t index) {
    const std::int64_t kv = index % kv_heads;
    engine.work(call, scratch + worker * each,
                {kv / sizes.kv_heads, kv % sizes.kv_heads, index / kv_heads});
  });
  share(team, all_runs, [&](int, std::int64_t index) { finish_gradients(call, run_of(index)); });
  finish_bias(call);
}

#define ATTNBENCH_INSTANTIATE(T)                                                     \
  template std::size_t softmax_backward_bytes<T>(const SoftmaxSizes&, int);          \
  template void softmax_backward<T>(const SoftmaxSizes&, const SoftmaxArguments<T>&, \
                                    const SoftmaxGradients<T>&, ThreadTeam&, void*, std::size_t);
ATTNBENCH_FOR_TYPES(ATTNBENCH_INSTANTIATE)

}  // namespace attnbench::kernels
