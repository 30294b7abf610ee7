// The kernel around recurrent_chunks.cuh: what a block begins from, its chunks, what it leaves.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/recurrent/chunks.cuh"

namespace attnbench::kernels::cuda {

/// Where a block's threads are: their head, slice and segment.
struct BlockPlace {
  int slice, segment, head, b, h;
};

template <class T>
__device__ inline BlockPlace block_place(const RecurrentArguments<T>& a) {
  const int x = static_cast<int>(blockIdx.x), head = x / a.slices;
  return {x % a.slices, static_cast<int>(blockIdx.y), head, head / a.heads, head % a.heads};
}

/// Calls f(l, l * value_dim + d, number) for all of a warp's numbers of S^T that are there.
template <int Latents, class F>
__device__ inline void each_of_state(float (&s)[Latents / 8][4], int latents, int value_dim,
                                     int column, F&& f) {
  // Or the compiler would keep all places from the first call to the last.
  const int lane = static_cast<int>(anew(threadIdx.x & 31)), g = lane >> 2, c = lane & 3;
  const int stride = static_cast<int>(anew(static_cast<Word>(value_dim)));
#pragma unroll
  for (int j = 0; j < Latents / 8; ++j) {
    if (j % 4 == 0) in_order();  // or more loads come at once than there are registers for
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int l = 8 * j + 2 * c + (i & 1), d = column + g + (i >> 1) * 8;
      if (l < latents && d < stride) f(l, l * stride + d, s[j][i]);
    }
  }
}

/// Takes in the state of one slot: of all that came before, or of a segment.
template <class Family, class T, int Latents, int Threads>
__device__ inline void fold(const RecurrentArguments<T>& a, const RecurrentState& from,
                            std::int64_t slot, float units, float (&s)[Latents / 8][4],
                            const ChunkView<Latents>& view, int column) {
  float* const gain = view.scratch;
  for (int l = threadIdx.x; l < a.latents; l += Threads) {
    const std::int64_t at = slot * a.latents + l;
    float decay = 1, add = 1;
    if constexpr (Family::decays) {
      const float old = view.maximum[l], other = from.maximum[at] * units;
      const float next = fmaxf(old, other), base = next == -INFINITY ? 0.F : next;
      decay = exp2_fast(old - base);
      add = exp2_fast(other - base);
      view.maximum[l] = next;
      view.decay[l] = decay;
      gain[l] = add;
    }
    if (a.tracked && from.total != nullptr)
      view.total[l] = decay * view.total[l] + add * from.total[at];
  }
  if constexpr (Family::decays) __syncthreads();
  if (from.sum != nullptr) {
    const float* const sum = from.sum + slot * a.latents * a.value_dim;
    each_of_state<Latents>(s, a.latents, a.value_dim, column, [&](int l, int at, float& x) {
      const float other = sum[at];
      x = Family::decays ? view.decay[l] * x + gain[l] * other : x + other;
    });
  }
  if constexpr (Family::decays) __syncthreads();
}

/// Writes a warp's 16 columns of O into the tile that held its values.
template <class T, int Columns>
__device__ inline void leave_results(const RecurrentArguments<T>& a, const float (&o)[8][4],
                                     const float* parts, bool two_parts, const float* unseen,
                                     const Tile<Columns>& tile) {
  const int lane = threadIdx.x & 31, g = lane >> 2, c = lane & 3;
  const int column = static_cast<int>(threadIdx.x >> 5) * 16 + 2 * c;
#pragma unroll
  for (int n = 0; n < 8; ++n) {
    const int token = 8 * n;
    float by0 = 1 / Operand<T>::shrink, by1 = by0;
    if (a.normalised) {
      float2 whole = *reinterpret_cast<const float2*>(parts + token + 2 * c);
      if (two_parts) {
        const float2 more = *reinterpret_cast<const float2*>(parts + chunk_tokens + token + 2 * c);
        whole.x += more.x;
        whole.y += more.y;
      }
      if (unseen != nullptr) {
        whole.x += unseen[token + 2 * c];
        whole.y += unseen[token + 2 * c + 1];
      }
      whole.x += a.epsilon;
      whole.y += a.epsilon;
      by0 = whole.x == 0 ? 0.F : __fdividef(by0, whole.x);
      by1 = whole.y == 0 ? 0.F : __fdividef(by1, whole.y);
    }
    tile.pair(token + g, column) = transpose_matrix(pack_pair<T>(o[n][0] * by0, o[n][1] * by1));
    tile.pair(token + g, column + 8) = transpose_matrix(pack_pair<T>(o[n][2] * by0, o[n][3] * by1));
  }
}

template <int Columns, int Threads, class T>
__device__ inline void store_rows(const Tile<Columns>& tile, T* out, std::int64_t stride,
                                  int columns, bool by_pieces, int begin, int end) {
  constexpr int pieces = Columns / 8, rows = Threads / pieces;
  const int row = static_cast<int>(threadIdx.x) / pieces,
            piece = static_cast<int>(threadIdx.x) % pieces;
  if (piece * 8 >= columns) return;
  const uint4* const at = &tile.piece(row, piece);
  T* to = out + row * stride + piece * 8;
#pragma unroll
  for (int i = 0; i < chunk_tokens / rows; ++i, to += rows * stride) {
    const int t = row + i * rows;
    if (t < begin || t >= end) continue;
    const uint4 x = at[i * rows * pieces];
    if (by_pieces) {
      *reinterpret_cast<uint4*>(to) = x;
      continue;
    }
    const Word words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      if (piece * 8 + j < columns) {
        to[j].bits = static_cast<std::uint16_t>(words[j / 2] >> (j % 2 * 16));
      }
    }
  }
}

/// Grid [heads * slices, segments]. Without outputs, only the states of segments are left, to
/// a.borders, and the last segment has no block.
template <class Family, class T, int Latents, int Warps, bool Outputs>
__global__ void __launch_bounds__(32 * Warps,
                                  ChunkLayout<Family, T, Latents, Warps, Outputs>::blocks)
    recurrent_chunks(const RecurrentArguments<T> a) {
  using Layout = ChunkLayout<Family, T, Latents, Warps, Outputs>;
  constexpr int threads = Layout::threads, columns = Layout::columns, stages = Layout::stages;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  const BlockPlace place = block_place(a);
  const int warp = static_cast<int>(threadIdx.x >> 5);
  const int column = place.slice * columns;              // the block's first
  const int width = min(columns, a.value_dim - column);  // and how many are there
  float* const vectors = reinterpret_cast<float*>(memory + Layout::vectors);
  float* const parts = vectors + 3 * Latents + chunk_tokens;  // [2, chunk_tokens]
  const Tile<chunk_tokens> inner{memory + Layout::inner};
  ChunkView<Latents> view;
  view.total = vectors;
  view.decay = vectors + Latents;
  view.maximum = vectors + 2 * Latents;
  view.top = vectors + 3 * Latents;
  view.scratch = reinterpret_cast<float*>(memory + Layout::inner);
  if (Family::decays && Outputs && a.kind == static_cast<int>(PoolQuery::logits)) {
    view.unseen = reinterpret_cast<float*>(memory + Layout::unseen);
  }

  float s[Latents / 8][4] = {};
  for (int l = threadIdx.x; l < Latents; l += threads) {
    view.total[l] = 0;
    view.decay[l] = 1;
    view.maximum[l] = -INFINITY;
  }
  __syncthreads();
  if (place.segment == 0) {
    if (a.before.sum != nullptr) {
      fold<Family, T, Latents, threads>(a, a.before, place.head, log2_of_e, s, view,
                                        column + warp * 16);
    }
  } else if (Outputs) {
    for (int j = a.folded ? 0 : place.segment - 1; j < place.segment; ++j) {
      fold<Family, T, Latents, threads>(a, a.borders,
                                        std::int64_t{place.head} * (a.segments - 1) + j, 1.F, s,
                                        view, column + warp * 16);
    }
  }

  const int first = place.segment * a.segment_chunks * chunk_tokens;
  const int last = min(a.length, first + a.segment_chunks * chunk_tokens);
  const auto load_values = [&](int t0, const Tile<columns>& to, std::uint64_t seen) {
    fetch<columns, threads>(to, a.values.at(place.b, place.h, t0) + column, a.values.row_stride,
                            width, a.value_pieces, seen);
  };
  const auto load = [&](int t0, int stage) {
    unsigned char* const at = memory + stage * Layout::stage;
    const int rows = min(chunk_tokens, last - t0);
    const std::uint8_t* const mask =
        a.mask == nullptr ? nullptr : a.mask + place.b * a.mask_stride + t0;
    const std::uint64_t seen = seen_rows(mask, rows);
    if constexpr (Outputs) {
      fetch<Latents, threads>(Tile<Latents>{at + Layout::query}, a.query.at(place.b, place.h, t0),
                              a.query.row_stride, a.latents, a.query_pieces,
                              seen_rows(nullptr, rows));
    }
    fetch<Latents, threads>(Tile<Latents>{at + Layout::key}, a.key.at(place.b, place.h, t0),
                            a.key.row_stride, a.latents, a.key_pieces, seen);
    load_values(t0, Tile<columns>{at + Layout::values}, seen);
    return seen;
  };

  std::uint64_t coming = 0;
  if constexpr (stages > 1) coming = load(first, 0);
  commit_copies();
  for (int t0 = first, stage = 0; t0 < last; t0 += chunk_tokens) {
    if constexpr (stages > 1) {
      wait_copies<0>();
      __syncthreads();
      view.seen = coming;
      if (t0 + chunk_tokens < last) coming = load(t0 + chunk_tokens, stage ^ 1);
      commit_copies();
    } else {
      __syncthreads();
      view.seen = load(t0, 0);
      commit_copies();
      wait_copies<0>();
      __syncthreads();
    }
    unsigned char* const at = memory + stage * Layout::stage;
    const Tile<columns> values{at + Layout::values};
    view.query.data = at + Layout::query;
    view.key.data = at + Layout::key;
    view.weights.data = Family::own_tiles ? memory + Layout::weights : view.query.data;
    view.keys.data = Family::own_tiles ? memory + Layout::keys : view.key.data;
    view.rows = min(chunk_tokens, last - t0);
    if constexpr (stages > 1) stage ^= 1;
    int begin = 0, most = chunk_tokens;
    do {
      const int end = Family::template prepare<T, Outputs, Latents, threads>(a, view, begin, most);
      most = 2 * (end - begin);
      if constexpr (Outputs) {
        weigh_all<T, Latents, Warps>(view, inner, parts, a.normalised);
        __syncthreads();
      }
      Word v[4][4];
      const Fragments<columns> value_fragments(values);
#pragma unroll
      for (int k = 0; k < 4; ++k) value_fragments.left_transposed(v[k], k * 16, warp * 16);
      if constexpr (Family::decays) {
#pragma unroll
        for (int j = 0; j < Latents / 8; ++j) {
          if (j % 8 == 0) in_order();
          const float2 decay =
              *reinterpret_cast<const float2*>(view.decay + 8 * j + 2 * (threadIdx.x & 3));
          s[j][0] *= decay.x;
          s[j][1] *= decay.y;
          s[j][2] *= decay.x;
          s[j][3] *= decay.y;
        }
      }
      if constexpr (Outputs) {
        const Fragments<Latents> weights(view.weights);
        const Fragments<chunk_tokens> inner_fragments(inner);
        const float2 scale = into_range<T, Latents>(s);
        float o[8][4] = {};
        read_out<T, Latents>(o, s, scale, v, weights, inner_fragments);
        leave_results<T>(a, o, parts, Warps == 8, view.unseen, values);
      }
      take_in<T, Latents, Warps>(s, v, Fragments<Latents>(view.keys), view.total, a.tracked);
      if constexpr (Outputs) {
        __syncthreads();
        store_rows<columns, threads>(values, a.out.at(place.b, place.h, t0) + column,
                                     a.out.row_stride, width, a.out_pieces, begin, end);
      }
      if (end == view.rows) break;
      begin = end;
      __syncthreads();
      if constexpr (Outputs) {  // the rest of the chunk needs the values that gave way to results
        load_values(t0, values, view.seen);
        commit_copies();
        wait_copies<0>();
        __syncthreads();
      }
    } while (true);
  }

  const bool ends = place.segment == a.segments - 1;
  const RecurrentState& to = ends ? a.after : a.borders;
  if (to.sum == nullptr) return;
  __syncthreads();
  const std::int64_t slot =
      ends ? place.head : std::int64_t{place.head} * (a.segments - 1) + place.segment;
  if (Outputs && !ends) return;
  float* const sum = to.sum + slot * a.latents * a.value_dim;
  each_of_state<Latents>(s, a.latents, a.value_dim, column + warp * 16,
                         [&](int, int at, float& x) { sum[at] = x; });
  if (place.slice != 0) return;
  for (int l = threadIdx.x; l < a.latents; l += threads) {
    const std::int64_t i = slot * a.latents + l;
    if (a.tracked && to.total != nullptr) to.total[i] = view.total[l];
    if (Family::decays) to.maximum[i] = view.maximum[l] * (ends ? ln_of_2 : 1.F);
  }
}

}  // namespace attnbench::kernels::cuda
