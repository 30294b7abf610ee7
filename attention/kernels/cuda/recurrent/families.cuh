// What tells the recurrent families apart on the device: how a chunk's queries and keys become the
// weights P and E of
//   o_t = (P_t S + sum_{s<=t} (P_t . E_s) v_s) / n_t,   S <- decay S + E^T V.
#pragma once

#include "attention/kernels/causal_product.hpp"
#include "attention/kernels/cuda/recurrent/arguments.cuh"
#include "attention/kernels/cuda/recurrent/tile.cuh"
#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::kernels::cuda {

constexpr float log2_of_e = 1.44269504088896340736F;
constexpr float ln_of_2 = 0.69314718055994530942F;

/// A chunk as a family sees it. `rows` tokens are there; bit t of `seen` says that token t is, and
/// is not hidden. Its queries and keys, P and E; [latents] sums, decays and maxima; room for
/// `scratch`.
template <int Latents>
struct ChunkView {
  Tile<Latents> query, key, weights, keys;
  float *total, *decay, *maximum, *top, *scratch;
  /// [chunk_tokens], where queries are logits and results are wanted: what latents that have seen
  /// nothing weigh. They have nothing to give, but the softmax over latents counts them.
  float* unseen = nullptr;
  int rows;
  std::uint64_t seen;
  /// Whether `top` holds what queries' exponents are measured against: see recurrent_gradients.cuh.
  bool tops_given = false;
};

__device__ inline bool has(std::uint64_t bits, int t) { return (bits >> t & 1) != 0; }

__device__ inline int first_of(std::uint64_t bits) {
  const int low = static_cast<int>(bits), high = static_cast<int>(bits >> 32);
  return low != 0 ? __ffs(low) - 1 : 31 + __ffs(high);
}

/// elu(x) + 1, or x.
struct ProductFamily {
  static constexpr bool own_tiles = false;  // P and E take the place of queries and keys
  static constexpr bool decays = false;
  static constexpr bool pools = false;  // weights are exponentials against a running maximum
  /// Whether results and gradients are made by chunks on the tensor cores.
  template <class T>
  static constexpr bool by_chunks = !std::is_same_v<T, float>;

  __device__ static float phi(float x) { return x > 0 ? x + 1 : exp2_fast(x * log2_of_e); }

  template <class T, int Latents, int Threads>
  __device__ static void features(const Tile<Latents>& tile, int latents, std::uint64_t seen) {
    features<T, Latents, Threads>(tile, tile, true, latents, seen, nullptr);
  }
  /// From one tile to another or the same; the rows times `by` where that is given.
  template <class T, int Latents, int Threads>
  __device__ static void features(const Tile<Latents>& to, const Tile<Latents>& from, bool elu,
                                  int latents, std::uint64_t seen, const float* by) {
    using N = Operand<T>;
    constexpr int pieces = Tile<Latents>::pieces;
#pragma unroll 2
    for (int i = threadIdx.x; i < chunk_tokens * pieces; i += Threads) {
      const int row = i / pieces, column = i % pieces * 8;
      const uint4 piece = from.piece(row, i % pieces);
      const float factor = by == nullptr ? 1.F : by[row];
      Word words[4] = {piece.x, piece.y, piece.z, piece.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        float low = N::low(words[j]), high = N::high(words[j]);
        if (elu) {
          low = phi(low);
          high = phi(high);
        }
        if (by != nullptr) {
          low *= factor;
          high *= factor;
        }
        words[j] = pack_pair<T>(column + 2 * j < latents ? low : 0.F,
                                column + 2 * j + 1 < latents ? high : 0.F);
      }
      to.piece(row, i % pieces) = has(seen, row)
                                      ? make_uint4(words[0], words[1], words[2], words[3])
                                      : make_uint4(0, 0, 0, 0);
    }
  }

  /// Makes P (where there are `Weights`) and E of the tokens from `begin` on; returns where they
  /// end. Ends with a barrier.
  template <class T, bool Outputs, int Latents, int Threads, bool Weights = Outputs>
  __device__ static int prepare(const RecurrentArguments<T>& a, const ChunkView<Latents>& view, int,
                                int) {
    if (a.kind == static_cast<int>(ProductFeature::elu_plus_one)) {
      if (Weights) features<T, Latents, Threads>(view.query, a.latents, ~std::uint64_t{0});
      features<T, Latents, Threads>(view.key, a.latents, view.seen);
      __syncthreads();
    }
    return view.rows;
  }
};

/// x, with a decay that each token gives. Token by token alone.
struct DecayingProductFamily : ProductFamily {
  static constexpr bool decays = true;
  template <class T>
  static constexpr bool by_chunks = false;
};

/// exp2 of scores against one maximum a latent, and weights over the running sums of these. Results
/// are made in bf16 alone: its exponents reach as far as those of float, so that a maximum may rise
/// far in a chunk. States alone are never weighed against sums of a chunk's first tokens, and are
/// made in fp16 too.
struct PoolFamily {
  static constexpr bool own_tiles = true;
  static constexpr bool decays = true;
  static constexpr bool pools = true;
  template <class T>
  static constexpr bool by_chunks = std::is_same_v<T, BFloat16>;
  /// How far a latent's running maximum may rise within a chunk, in powers of two.
  static constexpr float range = 90;

  /// The greatest of each query's exponents, to view.top; `maximum` is added where it is not null.
  template <class T, int Latents, int Threads>
  __device__ static void row_maxima(const RecurrentArguments<T>& a, const ChunkView<Latents>& view,
                                    const float* maximum) {
    using N = Operand<T>;
    constexpr int share = Threads / chunk_tokens;  // threads of one row
    constexpr int pieces = Tile<Latents>::pieces / share;
    const int row = threadIdx.x / share, first = threadIdx.x % share * pieces;
    float most = -INFINITY;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
      const uint4 x = view.query.piece(row, first + i);
      const Word words[4] = {x.x, x.y, x.z, x.w};
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        const int l = (first + i) * 8 + 2 * j;
        float low = N::low(words[j]) * a.scale, high = N::high(words[j]) * a.scale;
        if (maximum != nullptr) {
          low += maximum[l];
          high += maximum[l + 1];
        }
        if (l < a.latents) most = fmaxf(most, low);
        if (l + 1 < a.latents) most = fmaxf(most, high);
      }
    }
#pragma unroll
    for (int i = 1; i < share; i *= 2) most = fmaxf(most, __shfl_xor_sync(~0u, most, i));
    if (threadIdx.x % share != 0) return;
    view.top[row] = most == -INFINITY ? 0.F : most;
    if (view.unseen != nullptr) view.unseen[row] = 0;
  }

  /// To view.unseen the weights of which P has 0. Between barriers, and ends with one.
  template <class T, int Latents, int Threads>
  __device__ static void weigh_unseen(const RecurrentArguments<T>& a,
                                      const ChunkView<Latents>& view) {
    using N = Operand<T>;
    constexpr int share = Threads / chunk_tokens;
    const int row = threadIdx.x / share;
    const float top = view.top[row];
    float sum = 0;
    for (int l = threadIdx.x % share * 2; l < a.latents; l += 2 * share) {
      const Word q = view.query.pair(row, l), p = view.weights.pair(row, l);
      if ((p & 0xffffu) == 0) sum += exp2_fast(N::low(q) * a.scale - top);
      if (p >> 16 == 0 && l + 1 < a.latents) sum += exp2_fast(N::high(q) * a.scale - top);
    }
#pragma unroll
    for (int i = 1; i < share; i *= 2) sum += __shfl_xor_sync(~0u, sum, i);
    if (threadIdx.x % share == 0) view.unseen[row] = sum;
    __syncthreads();
  }

  template <class T, bool Outputs, int Latents, int Threads, bool Weights = Outputs>
  __device__ static int prepare(const RecurrentArguments<T>& a, const ChunkView<Latents>& view,
                                int begin, int most) {
    static_assert(by_chunks<T> || !(Outputs || Weights));
    using N = Operand<T>;
    constexpr int pairs = Latents / 2, groups = Threads / pairs, share = chunk_tokens / groups;
    static_assert(groups >= 1 && share <= 32);
    const int pair = threadIdx.x % pairs, l = 2 * pair;
    const int group = threadIdx.x / pairs, t0 = group * share;
    const bool real0 = l < a.latents, real1 = l + 1 < a.latents;
    float2* const maxima = reinterpret_cast<float2*>(view.scratch);  // [groups, pairs]
    float2* const sums = maxima + Threads;                           // [groups, pairs]
    const float total0 = view.total[l], total1 = view.total[l + 1];
    const float old0 = view.maximum[l], old1 = view.maximum[l + 1];

    int end = min(view.rows, begin + most);
    float next0, next1, decay0, decay1;
    std::uint64_t active;
    for (;;) {
      active = view.seen & (~std::uint64_t{0} << begin);
      if (end < 64) active &= (std::uint64_t{1} << end) - 1;
      const unsigned mine = static_cast<unsigned>(active >> t0);
      float most0 = -INFINITY, most1 = -INFINITY;
#pragma unroll 4
      for (int i = 0; i < share; ++i) {
        const Word k = view.key.pair(t0 + i, l);
        const bool is = (mine >> i & 1) != 0;
        most0 = fmaxf(most0, is ? N::low(k) * a.scale : -INFINITY);
        most1 = fmaxf(most1, is ? N::high(k) * a.scale : -INFINITY);
      }
      maxima[threadIdx.x] = make_float2(most0, most1);
      if (Outputs && !view.tops_given && a.kind == static_cast<int>(PoolQuery::logits)) {
        row_maxima<T, Latents, Threads>(a, view, nullptr);
      }
      __syncthreads();
      next0 = real0 ? old0 : -INFINITY;
      next1 = real1 ? old1 : -INFINITY;
      bool far = false;
      if (Outputs && active != 0) {
        const Word first = view.key.pair(first_of(active), l);
        most0 = fmaxf(next0, N::low(first) * a.scale);
        most1 = fmaxf(next1, N::high(first) * a.scale);
      }
#pragma unroll
      for (int g = 0; g < groups; ++g) {
        const float2 x = maxima[g * pairs + pair];
        next0 = fmaxf(next0, x.x - N::lift);
        next1 = fmaxf(next1, x.y - N::lift);
      }
      if (Outputs && active != 0) {
        far = (real0 && next0 - most0 > range) || (real1 && next1 - most1 > range);
      }
      // A latent that has seen nothing must not compute infinity minus infinity.
      const float base0 = next0 == -INFINITY ? 0.F : next0,
                  base1 = next1 == -INFINITY ? 0.F : next1;
      decay0 = exp2_fast(old0 - base0);
      decay1 = exp2_fast(old1 - base1);
      float sum0 = 0, sum1 = 0;
#pragma unroll 4
      for (int i = 0; i < share; ++i) {
        const Word k = view.key.pair(t0 + i, l);
        const bool is = (mine >> i & 1) != 0;
        const float x = is && real0 ? exp2_fast(N::low(k) * a.scale - base0) : 0.F;
        const float y = is && real1 ? exp2_fast(N::high(k) * a.scale - base1) : 0.F;
        const Word e = pack_pair<T>(x, y);
        // As they were rounded, so that weights sum to 1.
        sum0 += N::low(e);
        sum1 += N::high(e);
        view.keys.pair(t0 + i, l) = e;
      }
      sums[threadIdx.x] = make_float2(sum0, sum1);
      if (__syncthreads_or(far) == 0 || end - begin <= 1) break;
      end = begin + (end - begin) / 2;
    }
    if (group == 0) {
      view.total[l] = decay0 * total0;
      view.total[l + 1] = decay1 * total1;
      view.maximum[l] = next0;
      view.maximum[l + 1] = next1;
      view.decay[l] = decay0;
      view.decay[l + 1] = decay1;
    }
    if constexpr (Outputs) {
      if (!view.tops_given && a.kind == static_cast<int>(PoolQuery::logits_plus_z)) {
        __syncthreads();
        row_maxima<T, Latents, Threads>(a, view, view.maximum);
        __syncthreads();
      }
    }
    if constexpr (Weights) {
      const float base0 = next0 == -INFINITY ? 0.F : next0,
                  base1 = next1 == -INFINITY ? 0.F : next1;
      float sum0 = decay0 * total0, sum1 = decay1 * total1;
      for (int g = 0; g < group; ++g) {
        const float2 x = sums[g * pairs + pair];
        sum0 += x.x;
        sum1 += x.y;
      }
      const Word first = view.keys.pair(t0, l);  // of the sums, which only grow
      const bool unseen =
          (real0 && !(sum0 + N::low(first) > 0)) || (real1 && !(sum1 + N::high(first) > 0));
#pragma unroll 4
      for (int i = 0; i < share; ++i) {
        const int t = t0 + i;
        const Word q = view.query.pair(t, l), e = view.keys.pair(t, l);
        sum0 += N::low(e);
        sum1 += N::high(e);
        float x = N::low(q), y = N::high(q);
        if (a.kind == static_cast<int>(PoolQuery::weights)) {
          x = __fdividef(x, sum0);
          y = __fdividef(y, sum1);
        } else if (a.kind == static_cast<int>(PoolQuery::logits)) {
          x = __fdividef(exp2_fast(x * a.scale - view.top[t]), sum0);
          y = __fdividef(exp2_fast(y * a.scale - view.top[t]), sum1);
        } else {
          x = exp2_fast(x * a.scale + base0 - view.top[t]);
          y = exp2_fast(y * a.scale + base1 - view.top[t]);
        }
        const bool is = t >= begin && t < end;
        view.weights.pair(t, l) =
            pack_pair<T>(is && real0 && sum0 > 0 ? x : 0.F, is && real1 && sum1 > 0 ? y : 0.F);
      }
      if (view.unseen != nullptr) {
        if (__syncthreads_or(unseen) != 0) weigh_unseen<T, Latents, Threads>(a, view);
        return end;
      }
    }
    __syncthreads();
    return end;
  }
};

}  // namespace attnbench::kernels::cuda
