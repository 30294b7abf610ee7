// The causal scan of causal_scan.cuh: token by token in fp32, exact but for rounding, and by chunks
// on the tensor cores (Katharopoulos et al. 2020; the chunks as in Yang et al. 2023, GLA, section
// 4).
#include "attention/kernels/cuda/recurrent/causal_scan.cuh"

#include <algorithm>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/mma_sm80.cuh"
#include "attention/kernels/cuda/numbers.cuh"
#include "attention/kernels/cuda/tile.cuh"

namespace attnbench::kernels::cuda {
namespace {

/// Where a block is, and what it finds there. Steps of a scan are tokens, in its order.
template <class Inner, class Outer, class Out>
struct ScanPlace {
  const CausalScan<Inner, Outer, Out>& a;
  const std::int64_t slot, b, h;

  __device__ explicit ScanPlace(const CausalScan<Inner, Outer, Out>& scan)
      : a(scan), slot(blockIdx.x), b(slot / scan.heads), h(slot % scan.heads) {}
  __device__ int token(int step) const { return a.reverse ? a.length - 1 - step : step; }
  __device__ bool shown(bool hides, int t) const {
    return !hides || a.mask == nullptr || a.mask[b * a.mask_stride + t] != 0;
  }
  __device__ float read(int t, int i) const {
    return shown(a.hides_read, t) ? to_float(a.read.at(b, h, t)[i]) : 0.F;
  }
  __device__ float left(int t, int i) const {
    return shown(a.hides_left, t) ? to_float(a.left.at(b, h, t)[i]) : 0.F;
  }
  __device__ float right(int t, int c) const {
    return shown(a.hides_right, t) ? to_float(a.right.at(b, h, t)[c]) : 0.F;
  }
  /// What a step decays M by, for one i or one c.
  __device__ float decay(int step, int at) const {
    const int t = token(step) + (a.reverse ? 1 : 0);
    if (t == a.length) return 1;  // M is still 0
    return a.decay[(slot * a.length + t) * (a.decay_inner ? a.inner : a.outer) + at];
  }
  __device__ float* memory() const { return a.memory + slot * a.inner * a.outer; }
};

// ---- token by token: a warp holds four columns c, its lanes share the i ----

constexpr int scan_warps = 8, scan_columns = 4, scan_tokens = 16;
constexpr int scan_width = scan_warps * scan_columns;

/// Lanes hold i = lane + 32 k, k < Own. Grid [slots, outer / scan_width]; shared memory of
/// scan_bytes.
template <class Inner, class Outer, class Out, int Own>
__global__ void __launch_bounds__(32 * scan_warps, 1)
    scan_tokens_kernel(const CausalScan<Inner, Outer, Out> a) {
  constexpr int threads = 32 * scan_warps;
  ATTNBENCH_SHARED(float, floats, 128);
  float* const reads = floats;                              // [scan_tokens, inner]
  float* const lefts = reads + scan_tokens * a.inner;       // [scan_tokens, inner]
  float* const rights = lefts + scan_tokens * a.inner;      // [scan_tokens, scan_width]
  float* const decays = rights + scan_tokens * scan_width;  // [scan_tokens, inner or scan_width]
  const ScanPlace<Inner, Outer, Out> place(a);
  const int lane = threadIdx.x & 31, mine = static_cast<int>(threadIdx.x >> 5) * scan_columns;
  const int column = static_cast<int>(blockIdx.y) * scan_width;
  const int decay_width = a.decay_inner ? a.inner : scan_width;
  float m[Own][scan_columns] = {};
  const auto each = [&](auto&& f) {
#pragma unroll
    for (int k = 0; k < Own; ++k) {
#pragma unroll
      for (int j = 0; j < scan_columns; ++j) {
        const int i = lane + 32 * k, c = column + mine + j;
        if (i < a.inner && c < a.outer) f(place.memory()[i * a.outer + c], m[k][j]);
      }
    }
  };
  if (a.memory != nullptr) each([](float from, float& to) { to = from; });
  for (int begin = 0; begin < a.length; begin += scan_tokens) {
    const int rows = min(scan_tokens, a.length - begin);
    __syncthreads();
    for (int i = threadIdx.x; i < rows * a.inner; i += threads) {
      const int t = place.token(begin + i / a.inner);
      reads[i] = place.read(t, i % a.inner);
      lefts[i] = place.left(t, i % a.inner);
    }
    for (int i = threadIdx.x; i < rows * scan_width; i += threads) {
      const int t = place.token(begin + i / scan_width), c = column + i % scan_width;
      rights[i] = c < a.outer ? place.right(t, c) : 0.F;
    }
    for (int i = threadIdx.x; a.decay != nullptr && i < rows * decay_width; i += threads) {
      const int at = i % decay_width + (a.decay_inner ? 0 : column);
      const bool there = a.decay_inner || at < a.outer;
      decays[i] = there ? place.decay(begin + i / decay_width, at) : 0.F;
    }
    __syncthreads();
    for (int t = 0; t < rows; ++t) {
      float out[scan_columns] = {};
#pragma unroll
      for (int k = 0; k < Own; ++k) {
        const int i = lane + 32 * k;
        const bool there = i < a.inner;
        const float read = there ? reads[t * a.inner + i] : 0.F;
        const float left = there ? lefts[t * a.inner + i] : 0.F;
        const float own =
            there && a.decay != nullptr && a.decay_inner ? decays[t * a.inner + i] : 1.F;
#pragma unroll
        for (int j = 0; j < scan_columns; ++j) {
          const bool by_column = a.decay != nullptr && !a.decay_inner;
          const float decay = by_column ? decays[t * scan_width + mine + j] : own;
          m[k][j] = decay * m[k][j] + left * rights[t * scan_width + mine + j];
          out[j] += read * m[k][j];
        }
      }
#pragma unroll
      for (int j = 0; j < scan_columns; ++j) {
        const int c = column + mine + j;
        for (int i = 16; i > 0; i /= 2) out[j] += __shfl_xor_sync(~0u, out[j], i);
        if (lane == j && c < a.outer) {
          from_float(out[j], a.out.at(place.b, place.h, place.token(begin + t))[c]);
        }
      }
    }
  }
  if (a.memory != nullptr) each([](float& to, float from) { to = from; });
}

std::size_t scan_bytes(int inner) {
  return sizeof(float) * static_cast<std::size_t>(
                             scan_tokens * (2 * inner + scan_width + std::max(inner, scan_width)));
}

// ---- by chunks of 64 tokens: R, L and V the chunk's reads, lefts and rights,
//   W = tril(R L^T),   O^T = M^T R^T + V^T W^T,   M^T <- M^T + V^T L.
// M^T stays in registers as an accumulator, 16 columns c a warp; rounded and packed it is the left
// operand that O^T needs of it. Decays are taken apart: with D_t the product of those behind the
// chunk's first token, R_t D_t and L_t / D_t (or V_t / D_t, and O_t times D_t) need none. A chunk
// in which D_t falls below 2^-60 is cut in halves, down to one token, which has D_t = 1. Numbers
// are sums of two of bf16 (tile.cuh): more digits than fp16's, with a float's range for 1 / D_t.

constexpr int chunk_tokens = 64, chunk_threads = 128, chunk_columns = 64;
constexpr float least_decay = 0x1p-60F;

template <int Width>
struct ChunkLayout {
  static constexpr int lefts = Tile<Width>::bytes, rights = 2 * lefts;
  static constexpr int weights = rights + Tile<chunk_columns>::bytes;
  static constexpr int first = weights + Tile<chunk_tokens>::bytes;     // the first token's decay
  static constexpr int whole = first + (Width + chunk_columns) * 4;     // D of the last token
  static constexpr int products = whole + (Width + chunk_columns) * 4;  // D, where decays are by c
  static constexpr int bytes(bool by_column) {
    return products + (by_column ? chunk_tokens * chunk_columns * 4 : 0);
  }
};

/// Whether D falls too far between steps `begin` and `end`, for what this thread looks at.
template <class Place>
__device__ bool falls_far(const Place& place, int column, int begin, int end) {
  const auto& a = place.a;
  const int width = a.decay_inner ? a.inner : min(chunk_columns, a.outer - column);
  bool far = false;
  for (int i = threadIdx.x; i < width; i += chunk_threads) {
    float product = 1;
#pragma unroll 8
    for (int step = begin + 1; step < end; ++step) {
      product *= place.decay(step, i + (a.decay_inner ? 0 : column));
    }
    far = far || !(product >= least_decay);
  }
  return far;
}

/// Width: room for `inner`. Grid [slots, outer / chunk_columns].
template <class Inner, class Outer, class Out, int Width>
__global__ void __launch_bounds__(chunk_threads)
    scan_chunks_kernel(const CausalScan<Inner, Outer, Out> a) {
  using Layout = ChunkLayout<Width>;
  ATTNBENCH_SHARED(unsigned char, memory, 128);
  const Tile<Width> reads{memory}, lefts{memory + Layout::lefts};
  const Tile<chunk_columns> rights{memory + Layout::rights};
  const Tile<chunk_tokens> weights{memory + Layout::weights};
  float* const first = reinterpret_cast<float*>(memory + Layout::first);  // of i, then of c
  float* const whole = reinterpret_cast<float*>(memory + Layout::whole);
  float* const products = reinterpret_cast<float*>(memory + Layout::products);
  const ScanPlace<Inner, Outer, Out> place(a);
  const int lane = threadIdx.x & 31, warp = static_cast<int>(threadIdx.x >> 5);
  const int g = lane >> 2, k2 = 2 * (lane & 3);
  const int column = static_cast<int>(blockIdx.y) * chunk_columns;
  const bool by_column = a.decay != nullptr && !a.decay_inner;

  float m[Width / 8][4] = {};
  /// f(i, c, number) for all of a thread's numbers of M^T.
  const auto each = [&](auto&& f) {
#pragma unroll
    for (int j = 0; j < Width / 8; ++j) {
#pragma unroll
      for (int n = 0; n < 4; ++n) f(8 * j + k2 + (n & 1), 16 * warp + g + (n >> 1) * 8, m[j][n]);
    }
  };
  const auto decay_by = [&](const float* factors) {
    if (a.decay == nullptr) return;
    each([&](int i, int c, float& x) { x *= factors[by_column ? Width + c : i]; });
  };
  const auto there = [&](int i, int c) { return i < a.inner && column + c < a.outer; };
  if (a.memory != nullptr) {
    each([&](int i, int c, float& x) {
      if (there(i, c)) x = place.memory()[i * a.outer + column + c];
    });
  }
  int most = chunk_tokens;  // where one chunk is cut, the next will be
  for (int begin = 0, end = 0; begin < a.length; begin = end) {
    end = min(a.length, begin + most);
    while (a.decay != nullptr && end - begin > 1 &&
           __syncthreads_or(falls_far(place, column, begin, end)) != 0) {
      end = begin + (end - begin) / 2;
    }
    most = min(chunk_tokens, 2 * (end - begin));
    __syncthreads();
    // A thread takes one i or one c through the chunk's tokens.
    for (int at = threadIdx.x; at < Width + chunk_columns; at += chunk_threads) {
      const bool inner = at < Width;
      const int c = inner ? at : column + at - Width;
      const bool real = c < (inner ? a.inner : a.outer);
      const bool decays = real && a.decay != nullptr && a.decay_inner == inner;
      float product = 1, inverse = 1;
      first[at] = decays ? place.decay(begin, c) : 1;
#pragma unroll 8
      for (int i = 0; i < chunk_tokens; ++i) {
        const bool is = real && begin + i < end;
        const int t = place.token(begin + i);
        if (decays && is && i > 0) {
          product *= place.decay(begin + i, c);
          inverse = 1 / product;
        }
        if (inner) {
          reads.put(i, at, is ? place.read(t, c) * product : 0.F);
          lefts.put(i, at, is ? place.left(t, c) * inverse : 0.F);
        } else {
          rights.put(i, at - Width, is ? place.right(t, c) * inverse : 0.F);
          if (by_column) products[i * chunk_columns + at - Width] = product;
        }
      }
      whole[at] = product;
    }
    __syncthreads();
    const Fragments<Width> read(reads), left(lefts);
#pragma unroll 1
    for (int n = 0; n <= warp; ++n) {  // W's rows of 16 tokens a warp; later tokens' are not read
      float w[2][4] = {};
#pragma unroll
      for (int k = 0; k < Width / 16; ++k) {
        multiply_add(w[0], w[1], read.left(16 * warp, 16 * k), left.right(16 * n, 16 * k));
      }
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int to = 16 * warp + g, from = 16 * n + 8 * half + k2;
        const float(&x)[4] = w[half];
        weights.put(to, from, from <= to ? x[0] : 0, from + 1 <= to ? x[1] : 0);
        weights.put(to + 8, from, from <= to + 8 ? x[2] : 0, from + 1 <= to + 8 ? x[3] : 0);
      }
    }
    decay_by(first);
    __syncthreads();
    float o[8][4] = {};  // O^T: 16 columns c, 8 tokens each
#pragma unroll
    for (int k = 0; k < Width / 16; ++k) {
      Operand packed;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float* const x = m[2 * k + i / 2] + i % 2 * 2;
        split_pair(x[0], x[1], packed.high[i], packed.low[i]);
      }
#pragma unroll
      for (int n = 0; n < 4; ++n) {
        multiply_add(o[2 * n], o[2 * n + 1], packed, read.right(16 * n, 16 * k));
      }
    }
    const Fragments<chunk_columns> value(rights);
    const Fragments<chunk_tokens> weight(weights);
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const Operand v = value.left_transposed(16 * k, 16 * warp);
#pragma unroll
      for (int n = k; n < 4; ++n) {
        multiply_add(o[2 * n], o[2 * n + 1], v, weight.right(16 * n, 16 * k));
      }
#pragma unroll
      for (int n = 0; n < Width / 16; ++n) {
        multiply_add(m[2 * n], m[2 * n + 1], v, left.right_transposed(16 * k, 16 * n));
      }
    }
    decay_by(whole);
#pragma unroll
    for (int n = 0; n < 8; ++n) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int t = 8 * n + k2 + (i & 1), c = 16 * warp + g + (i >> 1) * 8;
        if (begin + t >= end || column + c >= a.outer) continue;
        const float by = by_column ? products[t * chunk_columns + c] : 1.F;
        from_float(o[n][i] * by, a.out.at(place.b, place.h, place.token(begin + t))[column + c]);
      }
    }
  }
  if (a.memory != nullptr) {
    each([&](int i, int c, float x) {
      if (there(i, c)) place.memory()[i * a.outer + column + c] = x;
    });
  }
}

// ---- launch ----

template <class Inner, class Outer, class Out, int Own>
void launch_tokens(const CausalScan<Inner, Outer, Out>& scan, unsigned slots, Stream stream) {
  const int slices = (scan.outer + scan_width - 1) / scan_width;
  launch(scan_tokens_kernel<Inner, Outer, Out, Own>, dim3(slots, static_cast<unsigned>(slices)),
         dim3(32 * scan_warps), scan_bytes(scan.inner), stream, scan);
}

/// Whether they could be launched: not where they are too wide, or blocks have too little shared
/// memory.
template <class Inner, class Outer, class Out, int Width = 64>
bool launch_chunks(const CausalScan<Inner, Outer, Out>& scan, unsigned slots, Stream stream) {
  if (scan.inner > Width) {
    if constexpr (Width < most_chunk_inner) {
      return launch_chunks<Inner, Outer, Out, 2 * Width>(scan, slots, stream);
    }
    return false;
  }
  const std::size_t bytes = ChunkLayout<Width>::bytes(scan.decay != nullptr && !scan.decay_inner);
  if (bytes > card().shared_bytes) return false;
  const int slices = (scan.outer + chunk_columns - 1) / chunk_columns;
  launch(scan_chunks_kernel<Inner, Outer, Out, Width>, dim3(slots, static_cast<unsigned>(slices)),
         dim3(chunk_threads), bytes, stream, scan);
  return true;
}

}  // namespace

template <class Inner, class Outer, class Out>
void causal_scan(const CausalScan<Inner, Outer, Out>& scan, std::int64_t slots, Stream stream) {
  const auto blocks = static_cast<unsigned>(slots);
  if constexpr (sizeof(Inner) == 2 || sizeof(Outer) == 2) {
    if (launch_chunks(scan, blocks, stream)) return;
  }
  if (scan.inner <= 64) return launch_tokens<Inner, Outer, Out, 2>(scan, blocks, stream);
  if (scan.inner <= 128) return launch_tokens<Inner, Outer, Out, 4>(scan, blocks, stream);
  launch_tokens<Inner, Outer, Out, 16>(scan, blocks, stream);
}

#define ATTNBENCH_INSTANTIATE(Inner, Outer, Out)                                                   \
  template void causal_scan<Inner, Outer, Out>(const CausalScan<Inner, Outer, Out>&, std::int64_t, \
                                               Stream);
ATTNBENCH_INSTANTIATE(float, float, float)
ATTNBENCH_INSTANTIATE(float, BFloat16, BFloat16)
ATTNBENCH_INSTANTIATE(BFloat16, float, float)
ATTNBENCH_INSTANTIATE(float, Half, Half)
ATTNBENCH_INSTANTIATE(Half, float, float)

}  // namespace attnbench::kernels::cuda
