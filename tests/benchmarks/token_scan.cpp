#include "tests/benchmarks/token_scan.hpp"

#include <algorithm>
#include <limits>

#include "attention/kernels/cpu/simd/simd.hpp"

namespace attnbench::bench {
namespace {

using namespace attnbench::kernels;

/// One head's memory and what a token is to it.
struct Head {
  float *sum, *maximum, *normaliser, *weights, *scores;
};

/// The token's exponentials, and its weights over the normalisers. Whether a maximum moved.
template <int Bytes>
ATTNBENCH_INLINE bool take_in(const Head& head, const float* query, const float* score,
                              float* decays, std::int64_t latents) {
  using S = Simd<float, Bytes>;
  constexpr auto to_base_2 = static_cast<float>(log2_of_e);
  auto most = S::load(query);
  for (std::int64_t l = S::lanes; l < latents; l += S::lanes) {
    most = S::max(most, S::load(query + l));
  }
  const float top = S::greatest(most);
  auto total = S::broadcast(0);
  auto least_decay = S::broadcast(1);
  for (std::int64_t l = 0; l < latents; l += S::lanes) {
    const auto before = S::load(head.maximum + l);
    const auto k = to_base_2 * S::load(score + l);
    const auto after = S::max(before, k);
    const auto decay = S::exp2(before - after);
    const auto e = S::exp2(k - after);
    const auto normaliser = decay * S::load(head.normaliser + l) + e;
    const auto p = S::exp2(to_base_2 * (S::load(query + l) - top));
    total += p;
    least_decay = decay < least_decay ? decay : least_decay;
    S::store(head.maximum + l, after);
    S::store(head.normaliser + l, normaliser);
    S::store(decays + l, decay);
    S::store(head.scores + l, e);
    S::store(head.weights + l, p / normaliser);
  }
  const float factor = 1 / S::sum(total);
  for (std::int64_t l = 0; l < latents; l += S::lanes) {
    S::store(head.weights + l, factor * S::load(head.weights + l));
  }
  return -S::greatest(-least_decay) < 1;
}

/// Updates every row of the memory and reads it, N vectors of columns at a time.
template <int Bytes, int N, bool Decays>
ATTNBENCH_INLINE void read_out(const Head& head, const float* decays, const float* value,
                               float* out, std::int64_t latents, std::int64_t width) {
  using S = Simd<float, Bytes>;
  for (std::int64_t d = 0; d < width; d += N * S::lanes) {
    typename S::Vector v[N], o[N];
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) {
      v[j] = S::load(value + d + j * S::lanes);
      o[j] = S::broadcast(0);
    }
    for (std::int64_t l = 0; l < latents; ++l) {
      float* const row = head.sum + l * width + d;
#pragma GCC unroll 4
      for (int j = 0; j < N; ++j) {
        auto sum = S::load(row + j * S::lanes);
        if constexpr (Decays) sum *= decays[l];
        sum += head.scores[l] * v[j];
        S::store(row + j * S::lanes, sum);
        o[j] += head.weights[l] * sum;
      }
    }
#pragma GCC unroll 4
    for (int j = 0; j < N; ++j) S::store(out + d + j * S::lanes, o[j]);
  }
}

template <int Bytes>
ATTNBENCH_INLINE void scan_head(const PrefixPoolSizes& sizes, const PrefixPoolArguments<float>& a,
                                std::int64_t h, float* room) {
  const std::int64_t latents = sizes.latents;
  const Head head{room, room + latents * sizes.value_dim, room + latents * (sizes.value_dim + 1),
                  room + latents * (sizes.value_dim + 2), room + latents * (sizes.value_dim + 3)};
  float* const decays = room + latents * (sizes.value_dim + 4);
  std::fill_n(head.sum, latents * sizes.value_dim, 0.0F);
  std::fill_n(head.maximum, latents, std::numeric_limits<float>::lowest());
  std::fill_n(head.normaliser, latents, 0.0F);
  for (std::int64_t t = 0; t < sizes.length; ++t) {
    const bool moved =
        take_in<Bytes>(head, a.query.at(0, h, t), a.scores.at(0, h, t), decays, latents);
    const float* const v = a.values.at(0, h, t);
    float* const o = a.out.at(0, h, t);
    if (moved) {
      read_out<Bytes, 4, true>(head, decays, v, o, latents, sizes.value_dim);
    } else {
      read_out<Bytes, 4, false>(head, decays, v, o, latents, sizes.value_dim);
    }
  }
}

using ScanHead = void (*)(const PrefixPoolSizes&, const PrefixPoolArguments<float>&, std::int64_t,
                          float*);
void scan_baseline(const PrefixPoolSizes& s, const PrefixPoolArguments<float>& a, std::int64_t h,
                   float* room) {
  scan_head<16>(s, a, h, room);
}
ATTNBENCH_AVX2 void scan_avx2(const PrefixPoolSizes& s, const PrefixPoolArguments<float>& a,
                              std::int64_t h, float* room) {
  scan_head<32>(s, a, h, room);
}
ATTNBENCH_AVX512 void scan_avx512(const PrefixPoolSizes& s, const PrefixPoolArguments<float>& a,
                                  std::int64_t h, float* room) {
  scan_head<64>(s, a, h, room);
}

template <int Bytes>
ATTNBENCH_INLINE void stream_part(float* x, std::int64_t count) {
  using S = Simd<float, Bytes>;
  for (std::int64_t i = 0; i < count; i += S::lanes) S::store(x + i, S::load(x + i) * 0.5F + 1.0F);
}
template <int Bytes>
ATTNBENCH_INLINE float read_part(const float* x, std::int64_t count) {
  using S = Simd<float, Bytes>;
  typename S::Vector sums[4] = {};
  for (std::int64_t i = 0; i + 4 * S::lanes <= count; i += 4 * S::lanes) {
    for (int j = 0; j < 4; ++j) sums[j] += S::load(x + i + j * S::lanes);
  }
  return S::sum(sums[0] + sums[1] + sums[2] + sums[3]);
}
float read_baseline(const float* x, std::int64_t count) { return read_part<16>(x, count); }
ATTNBENCH_AVX2 float read_avx2(const float* x, std::int64_t count) {
  return read_part<32>(x, count);
}
ATTNBENCH_AVX512 float read_avx512(const float* x, std::int64_t count) {
  return read_part<64>(x, count);
}
void stream_baseline(float* x, std::int64_t count) { stream_part<16>(x, count); }
ATTNBENCH_AVX2 void stream_avx2(float* x, std::int64_t count) { stream_part<32>(x, count); }
ATTNBENCH_AVX512 void stream_avx512(float* x, std::int64_t count) { stream_part<64>(x, count); }

}  // namespace

void token_scan(const PrefixPoolSizes& sizes, const PrefixPoolArguments<float>& arguments,
                ThreadTeam& team, float* room) {
  const ScanHead scan = pick(scan_baseline, scan_avx2, scan_avx512);
  const std::int64_t each = sizes.latents * (sizes.value_dim + 5);
  share(team, sizes.heads,
        [&](int worker, std::int64_t h) { scan(sizes, arguments, h, room + worker * each); });
}

void stream(float* x, std::int64_t count, ThreadTeam& team) {
  const auto part = pick(stream_baseline, stream_avx2, stream_avx512);
  const std::int64_t each = (count / team.size() + 15) / 16 * 16;
  share(team, team.size(),
        [&](int, std::int64_t i) { part(x + i * each, std::min(each, count - i * each)); });
}

void read(const float* x, std::int64_t count, ThreadTeam& team, float* sums) {
  const auto part = pick(read_baseline, read_avx2, read_avx512);
  const std::int64_t each = (count / team.size() + 15) / 16 * 16;
  share(team, team.size(), [&](int, std::int64_t i) {
    sums[i] = part(x + i * each, std::min(each, count - i * each));
  });
}

}  // namespace attnbench::bench
