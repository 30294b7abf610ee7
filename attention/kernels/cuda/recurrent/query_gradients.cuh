// dLoss/dquery of the recurrent families by chunks: see recurrent_gradients.cuh. Leaves what the
// kernel behind it (recurrent_key_gradients.cuh) needs of each token and chunk.
#pragma once

#include "attention/kernels/cuda/recurrent/gradient_range.cuh"

namespace attnbench::kernels::cuda {

/// Columns: of the values.
template <class Family, class T, int Latents, int Columns>
struct QueryGradientLayout {
  static constexpr int warps = Latents / 16, threads = 32 * warps;
  static constexpr int row_tile = chunk_tokens * Latents * 2,
                       value_tile = chunk_tokens * Columns * 2;
  static constexpr int query = 0, key = row_tile, values = 2 * row_tile;
  static constexpr int grads = values + value_tile;  // g
  static constexpr bool read_values = true;
  static constexpr int stage = grads + value_tile;
  static constexpr int keys = 2 * stage;                                   // E
  static constexpr int inner = keys + (Family::own_tiles ? row_tile : 0);  // tril(G V^T)
  static constexpr int parts = inner + chunk_tokens * chunk_tokens * 2;
  static constexpr int vectors = parts + warps * 2 * chunk_tokens * 4;
  static constexpr int ranges = vectors + (3 * Latents + 3 * chunk_tokens) * 4;
  static constexpr int bytes = ranges + (Operand<T>::narrow ? 3 * chunk_tokens * 4 : 0);
  static constexpr int blocks = Latents <= 64 ? 2 : 1;  // of a multiprocessor
};

/// Grid [heads, segments].
template <class Family, class T, int Latents, int Columns>
__global__ void __launch_bounds__(2 * Latents,
                                  QueryGradientLayout<Family, T, Latents, Columns>::blocks)
    recurrent_query_gradients(const RecurrentArguments<T> a, const ChunkGradients<T> gradients) {
  using Layout = QueryGradientLayout<Family, T, Latents, Columns>;
  using Rules = GradientRules<Family>;
  constexpr int threads = Layout::threads, warps = Layout::warps;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  const BlockPlace place = block_place(a);
  const int lane = threadIdx.x & 31, c = lane & 3;
  const int column = static_cast<int>(threadIdx.x >> 5) * 16;  // the warp's latents
  const int mine = column + (lane >> 2);                       // and the thread's: this, and + 8
  float* const vectors = reinterpret_cast<float*>(memory + Layout::vectors);
  float* const parts = reinterpret_cast<float*>(memory + Layout::parts);  // [warps, 2, tokens]
  float2* const row_of = reinterpret_cast<float2*>(vectors + 3 * Latents + chunk_tokens);
  const Tile<chunk_tokens> inner{memory + Layout::inner};
  ChunkView<Latents> view;
  view.total = vectors;
  view.decay = vectors + Latents;
  view.maximum = vectors + 2 * Latents;
  view.top = vectors + 3 * Latents;
  view.scratch = reinterpret_cast<float*>(memory + Layout::inner);
  ChunkView<Columns> product;  // G before V
  product.total = nullptr;
  constexpr bool narrow = Operand<T>::narrow;
  float* const ranges = reinterpret_cast<float*>(memory + Layout::ranges);
  float* const factors = narrow ? ranges + 2 * chunk_tokens : nullptr;  // of the rows of G V^T

  const std::int64_t slot = std::int64_t{place.head} * (a.segments - 1) + place.segment - 1;
  float s[Columns / 8][4] = {};
  for (int l = threadIdx.x; l < Latents; l += threads) {
    const bool there = place.segment > 0 && l < a.latents;
    view.total[l] = there && a.tracked ? a.borders.total[slot * a.latents + l] : 0.F;
    view.maximum[l] = there && Family::decays ? a.borders.maximum[slot * a.latents + l] : -INFINITY;
    view.decay[l] = 1;
  }
  if (place.segment > 0) {
    const float* const sum = a.borders.sum + slot * a.latents * a.value_dim;
    each_of_rows<Columns>(s, a.latents, a.value_dim, column,
                          [&](int at, float& x) { x = sum[at]; });
  }

  const int first = place.segment * a.segment_chunks * chunk_tokens;
  const int last = min(a.length, first + a.segment_chunks * chunk_tokens);
  const auto load = [&](int t0, int stage) {
    return load_gradient_chunk<Layout, Latents, Columns>(a, gradients, place,
                                                         memory + stage * Layout::stage, t0, last);
  };

  std::uint64_t coming = load(first, 0);
  commit_copies();
  for (int t0 = first, stage = 0; t0 < last; t0 += chunk_tokens, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    view.seen = coming;
    if (t0 + chunk_tokens < last) coming = load(t0 + chunk_tokens, stage ^ 1);
    commit_copies();
    unsigned char* const at = memory + stage * Layout::stage;
    view.query.data = view.weights.data = at + Layout::query;
    view.key.data = at + Layout::key;
    view.keys.data = Family::own_tiles ? memory + Layout::keys : view.key.data;
    product.weights.data = at + Layout::grads;
    product.keys.data = at + Layout::values;
    view.rows = min(chunk_tokens, last - t0);
    if constexpr (Family::decays) {
      const std::int64_t chunks = (a.length + chunk_tokens - 1) / chunk_tokens;
      const std::int64_t to = (place.head * chunks + t0 / chunk_tokens) * a.latents;
      for (int l = threadIdx.x; l < a.latents; l += threads) {
        gradients.starts.total[to + l] = view.total[l];
        gradients.starts.maximum[to + l] = view.maximum[l];
      }
    }
    int begin = 0, most = chunk_tokens;
    do {
      const int end =
          Family::template prepare<T, true, Latents, threads, false>(a, view, begin, most);
      most = 2 * (end - begin);
      if constexpr (narrow) {
        scale_grads<T, Columns, threads>(product.weights, product.keys, ranges,
                                         ranges + chunk_tokens, factors);
      }
      weigh_all<T, Columns, warps>(product, inner, nullptr, false, factors);
      __syncthreads();
      Word e[4][4];
      const Fragments<Latents> keys(view.keys), queries(view.query);
#pragma unroll
      for (int k = 0; k < 4; ++k) keys.left_transposed(e[k], k * 16, column);
      if constexpr (Family::decays) decay_rows<Columns>(s, view.decay, mine);
      float x[8][4] = {}, kept[8][4];
      read_out<T, Columns>(x, s, into_range<T, Columns>(s), e, Fragments<Columns>(product.weights),
                           Fragments<chunk_tokens>(inner), factors);
      if constexpr (narrow) take_back(x, factors, 1);
      take_in<T, Columns, warps>(s, e, Fragments<Columns>(product.keys), nullptr, false);

      float total0 = view.total[mine], total1 = view.total[mine + 8];
      const float maximum0 = view.maximum[mine], maximum1 = view.maximum[mine + 8];
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float sum[2][4] = {{total0, total0, total1, total1}, {total0, total0, total1, total1}};
        Word q[4];
        keys.left_transposed(q, 16 * j, column);  // again: registers are dearer
        add_tokens<T, false>(sum, q);
        total0 = __shfl_sync(~0u, sum[1][1], lane | 3);
        total1 = __shfl_sync(~0u, sum[1][3], lane | 3);
        queries.left_transposed(q, 16 * j, column);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const int token = 16 * j + 8 * h + 2 * c;
          const float2 top = *reinterpret_cast<const float2*>(view.top + token);
          float whole[2] = {}, dot[2] = {};
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const int n = 2 * j + h;
            kept[n][i] = Rules::look(a, x[n][i], sum[h][i], in_fragment<T>(q, h, i),
                                     (i & 1) != 0 ? top.y : top.x, i < 2 ? maximum0 : maximum1,
                                     mine + (i < 2 ? 0 : 8) < a.latents, whole[i & 1], dot[i & 1]);
          }
#pragma unroll
          for (int i = 4; i < 32; i *= 2) {
#pragma unroll
            for (int k = 0; k < 2; ++k) {
              whole[k] += __shfl_xor_sync(~0u, whole[k], i);
              dot[k] += __shfl_xor_sync(~0u, dot[k], i);
            }
          }
          if (lane < 4) {
            float* const to = parts + column / 16 * 2 * chunk_tokens + token;
            to[0] = whole[0];
            to[1] = whole[1];
            to[chunk_tokens] = dot[0];
            to[chunk_tokens + 1] = dot[1];
          }
        }
      }
      if (c == 0) {
        view.total[mine] = total0;
        view.total[mine + 8] = total1;
      }
      __syncthreads();
      if (threadIdx.x < chunk_tokens) {
        const int t = static_cast<int>(threadIdx.x);
        float whole = 0, dot = 0;
#pragma unroll
        for (int w = 0; w < warps; ++w) {
          whole += parts[2 * w * chunk_tokens + t];
          dot += parts[(2 * w + 1) * chunk_tokens + t];
        }
        float2 keep;
        row_of[t] = Rules::row(a, whole, dot, view.top[t], keep);
        if (t >= begin && t < end) {
          const std::int64_t to = std::int64_t{place.head} * a.length + t0 + t;
          gradients.whole[to] = keep.x;
          gradients.grad[to] = keep.y;
        }
      }
      __syncthreads();
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        Word q[4];
        queries.left_transposed(q, 16 * j, column);
#pragma unroll
        for (int h = 0; h < 2; ++h) {
          const float2* const rows = row_of + 16 * j + 8 * h + 2 * c;
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            float& to = x[2 * j + h][i];
            to = Rules::d_query(a, to, kept[2 * j + h][i], in_fragment<T>(q, h, i), rows[i & 1]);
          }
        }
      }
      leave_columns<T>(view.query, x, column, begin, end);
      __syncthreads();
      store_rows<Latents, threads>(view.query, gradients.d_query.at(place.b, place.h, t0),
                                   gradients.d_query.row_stride, a.latents,
                                   gradients.d_query_pieces, begin, end);
      if (Rules::keeps_rest(a)) {
#pragma unroll
        for (int n = 0; n < 8; ++n) {
#pragma unroll
          for (int i = 0; i < 4; ++i) {
            const Word rounded = pack_pair<T>(x[n][i], 0);
            x[n][i] -= Operand<T>::low(rounded);
          }
        }
        __syncthreads();
        leave_columns<T>(view.query, x, column, begin, end);
        __syncthreads();
        store_rows<Latents, threads>(view.query, gradients.d_key.at(place.b, place.h, t0),
                                     gradients.d_key.row_stride, a.latents, gradients.d_key_pieces,
                                     begin, end);
      }
      if (end == view.rows) break;
      begin = end;
    } while (true);
  }
}

}  // namespace attnbench::kernels::cuda
