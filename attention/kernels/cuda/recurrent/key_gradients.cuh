// dLoss/dkey and dLoss/dvalues of the recurrent families by chunks, from the last token to the
// first: see recurrent_gradients.cuh.
#pragma once

#include "attention/kernels/cuda/recurrent/key_rows.cuh"

namespace attnbench::kernels::cuda {

/// `Keys` and `Values`: whose gradients are made, by warps of their own. Without outputs only the
/// states of segments are left, which takes what keys need.
template <class Family, class T, int Latents, int Columns, bool Keys, bool Values, bool Outputs>
struct KeyGradientLayout {
  static_assert(Keys || Values);
  static_assert(!(Keys && Values) || (Latents == Columns && Latents == 64));
  static constexpr int key_warps = Keys ? Latents / 16 : 0;
  static constexpr int warps = key_warps + (Values ? Columns / 16 : 0), threads = 32 * warps;
  static constexpr int row_tile = chunk_tokens * Latents * 2,
                       value_tile = chunk_tokens * Columns * 2;
  static constexpr int square = chunk_tokens * chunk_tokens * 2;
  static constexpr int query = 0, key = row_tile, grads = 2 * row_tile;
  static constexpr int values = grads + value_tile;
  static constexpr bool read_values = Keys && Outputs;
  static constexpr int stage = values + (read_values ? value_tile : 0);
  static constexpr int d_query = 2 * stage;
  static constexpr int rest = d_query + (Family::decays && Keys ? row_tile : 0);  // its rounding
  static constexpr int weights = rest + (Family::decays && Keys ? row_tile : 0);  // w
  static constexpr int keys = weights + (Family::own_tiles ? row_tile : 0);       // E
  static constexpr int inner = keys + row_tile;  // of V and G, of E and w
  static constexpr int vectors = inner + square * (Keys && Values ? 2 : 1);
  static constexpr int ranges = vectors + (3 * Latents + 2 * chunk_tokens) * 4;
  static constexpr int bytes = ranges + (Operand<T>::narrow ? ChunkRanges::floats * 4 : 0);
};

/// Grid [heads, segments], or without outputs one less, of the segments but the first.
template <class Family, class T, int Latents, int Columns, bool Keys, bool Values, bool Outputs>
__global__ void __launch_bounds__(
    KeyGradientLayout<Family, T, Latents, Columns, Keys, Values, Outputs>::threads, 1)
    recurrent_key_gradients(const RecurrentArguments<T> a, const ChunkGradients<T> gradients) {
  using Layout = KeyGradientLayout<Family, T, Latents, Columns, Keys, Values, Outputs>;
  using Rules = GradientRules<Family>;
  constexpr int threads = Layout::threads;
  constexpr int width = Keys ? Columns : Latents;  // of a warp's 16 rows of R or R^T
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  BlockPlace place = block_place(a);
  if (!Outputs) ++place.segment;
  const int lane = threadIdx.x & 31, c = lane & 3, warp = static_cast<int>(threadIdx.x >> 5);
  const bool for_keys = Keys && (!Values || warp < Layout::key_warps);
  const int column = 16 * (for_keys ? warp : warp - Layout::key_warps);  // latents, or values
  const int mine = column + (lane >> 2);  // the thread's: this, and + 8
  float* const vectors = reinterpret_cast<float*>(memory + Layout::vectors);
  float* const grad_of = vectors + 3 * Latents + chunk_tokens;
  const Tile<chunk_tokens> inner{memory + Layout::inner};  // the keys', or the only one
  const Tile<chunk_tokens> value_inner{memory + Layout::inner + (Keys ? Layout::square : 0)};
  const QueryGradients<Latents> asked{{memory + Layout::d_query},
                                      {memory + Layout::rest},
                                      Keys && Rules::reads_d_query(a),
                                      Keys && Rules::keeps_rest(a)};
  ChunkView<Latents> view;  // E before w
  view.total = vectors;
  view.decay = vectors + Latents;
  view.maximum = vectors + 2 * Latents;
  view.top = vectors + 3 * Latents;
  view.scratch = reinterpret_cast<float*>(memory + Layout::inner);
  view.tops_given = true;
  Tile<Columns> values, grads;
  constexpr bool narrow = Operand<T>::narrow;
  const bool elu = a.kind == static_cast<int>(ProductFeature::elu_plus_one);
  const ChunkRanges ranges(reinterpret_cast<float*>(memory + Layout::ranges));
  const float* const key_factors = narrow ? ranges.key_factors : nullptr;
  const float* const value_factors = narrow ? ranges.value_factors : nullptr;
  const float* const shares = narrow ? ranges.shares : nullptr;
  ChunkUnits units;  // of R and R^T: those of the chunk taken in last

  const std::int64_t slot = std::int64_t{place.head} * (a.segments - 1) + place.segment;
  float s[width / 8][4] = {}, later[2] = {};
  for (int l = threadIdx.x; l < Latents; l += threads) view.decay[l] = 1;
  if (Outputs && place.segment < a.segments - 1) {
    const float* const sum = gradients.later.sum + slot * a.latents * a.value_dim;
    if (for_keys) {
      if constexpr (Keys) {
        each_of_rows<width>(s, a.latents, a.value_dim, column,
                            [&](int at, float& x) { x = sum[at]; });
        const float* const total = gradients.later.total + slot * a.latents;
        if (mine < a.latents) later[0] = total[mine];
        if (mine + 8 < a.latents) later[1] = total[mine + 8];
      }
    } else if constexpr (Values) {
      each_of_state<width>(s, a.latents, a.value_dim, column,
                           [&](int, int at, float& x) { x = sum[at]; });
    }
  }

  const int first = place.segment * a.segment_chunks * chunk_tokens;
  const int last = min(a.length, first + a.segment_chunks * chunk_tokens);
  const auto load = [&](int t0, int stage) {
    return load_gradient_chunk<Layout, Latents, Columns>(a, gradients, place,
                                                         memory + stage * Layout::stage, t0, last);
  };
  const std::int64_t chunks = (a.length + chunk_tokens - 1) / chunk_tokens;

  int t0 = first + (last - first - 1) / chunk_tokens * chunk_tokens;
  std::uint64_t coming = load(t0, 0);
  commit_copies();
  for (int stage = 0; t0 >= first; t0 -= chunk_tokens, stage ^= 1) {
    wait_copies<0>();
    __syncthreads();
    view.seen = coming;
    view.rows = min(chunk_tokens, last - t0);
    if (asked.needed) {
      fetch<Latents, threads>(asked.stored, gradients.d_query.at(place.b, place.h, t0),
                              gradients.d_query.row_stride, a.latents, gradients.d_query_pieces,
                              seen_rows(nullptr, view.rows));
    }
    if (asked.rounded) {
      fetch<Latents, threads>(asked.rest, gradients.d_key.at(place.b, place.h, t0),
                              gradients.d_key.row_stride, a.latents, gradients.d_key_pieces,
                              seen_rows(nullptr, view.rows));
    }
    commit_copies();
    if (t0 > first) coming = load(t0 - chunk_tokens, stage ^ 1);
    commit_copies();
    unsigned char* const at = memory + stage * Layout::stage;
    view.query.data = at + Layout::query;
    view.key.data = at + Layout::key;
    view.weights.data = Family::own_tiles ? memory + Layout::weights : view.query.data;
    view.keys.data = memory + Layout::keys;
    grads.data = at + Layout::grads;
    values.data = at + Layout::values;
    const auto restart = [&] {  // before the first token of the chunk
      if constexpr (Family::decays) {
        const std::int64_t from = (place.head * chunks + t0 / chunk_tokens) * a.latents;
        for (int l = threadIdx.x; l < Latents; l += threads) {
          view.total[l] = l < a.latents ? gradients.starts.total[from + l] : 0.F;
          view.maximum[l] = l < a.latents ? gradients.starts.maximum[from + l] : -INFINITY;
        }
      }
      __syncthreads();
    };
    [[maybe_unused]] const auto advance = [&] {  // past the tokens that E is of
      for (int l = threadIdx.x; l < Latents; l += threads) {
        float sum = 0;
        for (int t = 0; t < chunk_tokens; ++t) {
          const Word pair = view.keys.pair(t, l & ~1);
          sum += (l & 1) != 0 ? Operand<T>::high(pair) : Operand<T>::low(pair);
        }
        view.total[l] += sum;
      }
      __syncthreads();
    };
    const auto prepare = [&](int begin, int most) {
      if constexpr (Family::decays) {
        return Family::template prepare<T, true, Latents, threads>(a, view, begin, most);
      } else {
        Family::template features<T, Latents, threads>(view.weights, view.query, elu, a.latents,
                                                       ~std::uint64_t{0}, view.top);
        Family::template features<T, Latents, threads>(view.keys, view.key, elu, a.latents,
                                                       view.seen, nullptr);
        __syncthreads();
        return view.rows;
      }
    };
    if (threadIdx.x < chunk_tokens) {
      const int t = static_cast<int>(threadIdx.x);
      const std::int64_t from = std::int64_t{place.head} * a.length + t0 + t;
      view.top[t] = t < view.rows ? gradients.whole[from] : 0.F;
      grad_of[t] = t < view.rows ? gradients.grad[from] : 0.F;
    }
    if constexpr (narrow) {
      measure_chunk<T, Keys, Values, Outputs, Latents, Columns, threads>(
          view.query, view.key, grads, values, elu, ranges);
    }
    restart();
    if constexpr (narrow) {
      const int before = units.sums;
      units = choose_units<Family, Keys, Values, Outputs, Latents, Columns>(ranges, elu, view.top,
                                                                            grad_of);
      const float by = power_of_two(units.sums - before);
#pragma unroll
      for (int j = 0; j < width / 8; ++j) {
#pragma unroll
        for (int i = 0; i < 4; ++i) s[j][i] *= by;
      }
    }

    // Where a chunk was cut, its pieces are taken from the last to the first, each from the sums
    // that those before it leave.
    int begin = 0, end = prepare(0, chunk_tokens);
    std::uint64_t begins = 1;
    if constexpr (Family::decays) {
      while (end < view.rows) {
        const int most = 2 * (end - begin);
        advance();
        begin = end;
        begins |= std::uint64_t{1} << begin;
        end = prepare(begin, most);
      }
    }
    for (;;) {
      const Fragments<Latents> weights(view.weights), keys(view.keys);
      const Fragments<Columns> value_fragments(values), grad_fragments(grads);
      if constexpr (Outputs) {
        if constexpr (Keys && Values) {
          const int square = warp & 3;
          if (for_keys) {
            ChunkView<Columns> none;
            weigh<T, Columns, 4, true>(none, inner, value_fragments, grad_fragments, nullptr,
                                       square, square, 4, 0, false, key_factors, shares);
          } else {
            weigh<T, Latents, 4, true>(view, value_inner, keys, weights, nullptr, square, square, 4,
                                       0, false, value_factors, shares);
          }
        } else if constexpr (Keys) {
          ChunkView<Columns> product;
          product.weights = values;
          product.keys = grads;
          weigh_all<T, Columns, Layout::warps, true>(product, inner, nullptr, false, key_factors,
                                                     shares);
        } else {
          ChunkView<Latents> product = view;
          product.weights = view.keys;
          product.keys = view.weights;
          weigh_all<T, Latents, Layout::warps, true>(product, value_inner, nullptr, false,
                                                     value_factors, shares);
        }
        __syncthreads();
      }
      float o[8][4] = {};
      Word x[4][4];  // w or g of the warp's 16 rows
      if (for_keys) {
        if constexpr (Keys) {
#pragma unroll
          for (int k = 0; k < 4; ++k) weights.left_transposed(x[k], k * 16, column);
          if constexpr (Outputs) {
            read_out<T, width, true>(o, s, into_range<T, width>(s), x, value_fragments,
                                     Fragments<chunk_tokens>(inner), key_factors);
            if constexpr (narrow) take_back(o, key_factors, power_of_two(-units.sums));
          }
          if constexpr (narrow) scale_tokens<T>(x, shares);
          take_in<T, width, 4>(s, x, grad_fragments, nullptr, false);
          if constexpr (Family::decays) decay_rows<width>(s, view.decay, mine);
        }
      } else if constexpr (Values) {
#pragma unroll
        for (int k = 0; k < 4; ++k) grad_fragments.left_transposed(x[k], k * 16, column);
        read_out<T, width, true>(o, s, into_range<T, width>(s), x, keys,
                                 Fragments<chunk_tokens>(value_inner), value_factors);
        if constexpr (narrow) take_back(o, value_factors, power_of_two(-units.sums));
        if constexpr (narrow) scale_tokens<T>(x, shares);
        take_in<T, width, 4>(s, x, weights, nullptr, false);
        if constexpr (Family::decays) decay_columns<width>(s, view.decay);
      }
      wait_copies<1>();  // for dLoss/dquery
      __syncthreads();
      if (for_keys) {
        if constexpr (Keys) {
          finish_keys<Family, T, Latents, Outputs>(a, view, grad_of, asked, units, x, column, o,
                                                   later);
          if constexpr (Outputs) leave_columns<T>(view.key, o, column, begin, end);
        }
      } else if constexpr (Values) {
        // In the place of what no warp reads any more.
        leave_columns<T>(Layout::read_values ? values : grads, o, column, begin, end);
      }
      __syncthreads();
      if constexpr (Outputs && Keys) {
        store_rows<Latents, threads>(view.key, gradients.d_key.at(place.b, place.h, t0),
                                     gradients.d_key.row_stride, a.latents, gradients.d_key_pieces,
                                     begin, end);
      }
      if constexpr (Values) {
        store_rows<Columns, threads>(
            Layout::read_values ? values : grads, gradients.d_values.at(place.b, place.h, t0),
            gradients.d_values.row_stride, a.value_dim, gradients.d_value_pieces, begin, end);
      }
      if (begin == 0) break;
      if constexpr (Family::decays) {
        const int stop = begin;
        begins &= ~(std::uint64_t{1} << begin);
        __syncthreads();
        restart();
        for (begin = 0;; begin = end) {
          const std::uint64_t after = begins >> begin >> 1;
          end = after == 0 ? stop : begin + 1 + first_of(after);
          prepare(begin, end - begin);
          if (end == stop) break;
          advance();
        }
      }
    }
  }

  if constexpr (!Outputs) {
    const std::int64_t to = slot - 1;
    float* const sum = gradients.later.sum + to * a.latents * a.value_dim;
    const float unit = power_of_two(-units.sums);
    each_of_rows<width>(s, a.latents, a.value_dim, column,
                        [&](int at, float& x) { sum[at] = narrow ? unit * x : x; });
    float* const total = gradients.later.total + to * a.latents;
    if (c == 0 && mine < a.latents) total[mine] = later[0];
    if (c == 0 && mine + 8 < a.latents) total[mine + 8] = later[1];
  }
}

}  // namespace attnbench::kernels::cuda
