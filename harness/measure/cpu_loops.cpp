#include "harness/measure/cpu_loops.hpp"

#include <cmath>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>

#include <initializer_list>
#endif

namespace attnbench::measure {
namespace {

// ln(2)^k / k!: 2^f on [-0.5, 0.5].
constexpr float c1 = 0.693147181F;
constexpr float c2 = 0.240226507F;
constexpr float c3 = 0.0555041087F;
constexpr float c4 = 0.00961812911F;
constexpr float c5 = 0.00133335581F;
constexpr float c6 = 0.000154035304F;

constexpr float factor = 0.999F;
constexpr float addend = 0.001F;
constexpr int chains = 12;

float portable_multiply_add(std::int64_t rounds) {
  float sums[chains * 4] = {};
  for (std::int64_t i = 0; i < rounds; ++i) {
    for (float& sum : sums) sum = sum * factor + addend;
  }
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

void portable_exponentials(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float whole = std::nearbyint(from[i]);
    const float f = from[i] - whole;
    const float power = 1 + f * (c1 + f * (c2 + f * (c3 + f * (c4 + f * (c5 + f * c6)))));
    const std::int32_t bits = (static_cast<std::int32_t>(whole) + 127) << 23;
    float scale = 0;
    std::memcpy(&scale, &bits, sizeof(scale));
    to[i] = power * scale;
  }
}

float portable_read(const float* from, std::int64_t count) {
  float sums[16] = {};
  for (std::int64_t i = 0; i < count; i += 16) {
    for (int lane = 0; lane < 16; ++lane) sums[lane] += from[i + lane];
  }
  float total = 0;
  for (const float sum : sums) total += sum;
  return total;
}

#if defined(__x86_64__)

[[gnu::target("avx2,fma")]] float avx2_multiply_add(std::int64_t rounds) {
  const __m256 a = _mm256_set1_ps(factor);
  const __m256 b = _mm256_set1_ps(addend);
  __m256 sums[chains];
  for (__m256& sum : sums) sum = b;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int chain = 0; chain < chains; ++chain) sums[chain] = _mm256_fmadd_ps(sums[chain], a, b);
  }
  __m256 total = b;
  for (const __m256& sum : sums) total = _mm256_add_ps(total, sum);
  return _mm256_cvtss_f32(total);
}

[[gnu::target("avx2,fma")]] void avx2_exponentials(const float* from, float* to,
                                                   std::int64_t count) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; i += 8) {
    const __m256 x = _mm256_load_ps(from + i);
    const __m256 whole = _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    const __m256 f = _mm256_sub_ps(x, whole);
    __m256 p = _mm256_set1_ps(c6);
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c5));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c4));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c3));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c2));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(c1));
    p = _mm256_fmadd_ps(p, f, _mm256_set1_ps(1.0F));
    const __m256i exponent = _mm256_slli_epi32(_mm256_cvtps_epi32(whole), 23);
    const __m256i bits = _mm256_add_epi32(_mm256_castps_si256(p), exponent);
    _mm256_store_ps(to + i, _mm256_castsi256_ps(bits));
  }
}

[[gnu::target("avx2,fma")]] float avx2_read(const float* from, std::int64_t count) {
  __m256 sums[8];
  for (__m256& sum : sums) sum = _mm256_setzero_ps();
  for (std::int64_t i = 0; i < count; i += 64) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] = _mm256_add_ps(sums[k], _mm256_load_ps(from + i + 8 * k));
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm256_add_ps(sums[0], sums[k]);
  return _mm256_cvtss_f32(sums[0]);
}

[[gnu::target("avx512f")]] float avx512_multiply_add(std::int64_t rounds) {
  const __m512 a = _mm512_set1_ps(factor);
  const __m512 b = _mm512_set1_ps(addend);
  __m512 sums[chains];
  for (__m512& sum : sums) sum = b;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int chain = 0; chain < chains; ++chain) sums[chain] = _mm512_fmadd_ps(sums[chain], a, b);
  }
  __m512 total = b;
  for (const __m512& sum : sums) total = _mm512_add_ps(total, sum);
  return _mm512_cvtss_f32(total);
}

[[gnu::target("avx512f")]] void avx512_exponentials(const float* from, float* to,
                                                    std::int64_t count) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; i += 16) {
    const __m512 x = _mm512_load_ps(from + i);
    // The masked form: gcc 12 warns of an uninitialised operand inside the plain one.
    const __m512 whole = _mm512_maskz_roundscale_ps(0xFFFF, x, 0);
    const __m512 f = _mm512_sub_ps(x, whole);
    __m512 p = _mm512_set1_ps(c6);
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c5));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c4));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c3));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c2));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(c1));
    p = _mm512_fmadd_ps(p, f, _mm512_set1_ps(1.0F));
    _mm512_store_ps(to + i, _mm512_maskz_scalef_ps(0xFFFF, p, whole));
  }
}

[[gnu::target("avx512f")]] float avx512_read(const float* from, std::int64_t count) {
  __m512 sums[8];
  for (__m512& sum : sums) sum = _mm512_setzero_ps();
  for (std::int64_t i = 0; i < count; i += 128) {
#pragma GCC unroll 8
    for (int k = 0; k < 8; ++k) sums[k] = _mm512_add_ps(sums[k], _mm512_load_ps(from + i + 16 * k));
  }
  for (int k = 1; k < 8; ++k) sums[0] = _mm512_add_ps(sums[0], sums[k]);
  return _mm512_cvtss_f32(sums[0]);
}

#elif defined(__aarch64__)

/// Four units with a latency of four cycles, as in Neoverse V1 and V2, take 16.
constexpr int neon_chains = 20;

float neon_multiply_add(std::int64_t rounds) {
  const float32x4_t a = vdupq_n_f32(factor);
  const float32x4_t b = vdupq_n_f32(addend);
  float32x4_t sums[neon_chains];
  for (float32x4_t& sum : sums) sum = b;
  for (std::int64_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 20
    for (int chain = 0; chain < neon_chains; ++chain) sums[chain] = vfmaq_f32(b, sums[chain], a);
  }
  float32x4_t total = b;
  for (const float32x4_t& sum : sums) total = vaddq_f32(total, sum);
  return vgetq_lane_f32(total, 0);
}

void neon_exponentials(const float* from, float* to, std::int64_t count) {
#pragma GCC unroll 4
  for (std::int64_t i = 0; i < count; i += 4) {
    const float32x4_t x = vld1q_f32(from + i);
    const float32x4_t whole = vrndnq_f32(x);
    const float32x4_t f = vsubq_f32(x, whole);
    float32x4_t p = vdupq_n_f32(c6);
    for (const float c : {c5, c4, c3, c2, c1, 1.0F}) p = vfmaq_f32(vdupq_n_f32(c), p, f);
    const int32x4_t exponent = vshlq_n_s32(vcvtq_s32_f32(whole), 23);
    vst1q_f32(to + i, vreinterpretq_f32_s32(vaddq_s32(vreinterpretq_s32_f32(p), exponent)));
  }
}

float neon_read(const float* from, std::int64_t count) {
  float32x4_t sums[16];
  for (float32x4_t& sum : sums) sum = vdupq_n_f32(0);
  for (std::int64_t i = 0; i < count; i += 64) {
#pragma GCC unroll 16
    for (int k = 0; k < 16; ++k) sums[k] = vaddq_f32(sums[k], vld1q_f32(from + i + 4 * k));
  }
  for (int k = 1; k < 16; ++k) sums[0] = vaddq_f32(sums[0], sums[k]);
  return vgetq_lane_f32(sums[0], 0);
}

#endif

}  // namespace

const CpuLoops& portable_loops() {
  static const CpuLoops loops{"portable", portable_multiply_add, chains * 4 * 2.0,
                              portable_exponentials, portable_read};
  return loops;
}

const CpuLoops& cpu_loops() {
#if defined(__x86_64__)
  static const CpuLoops avx512{"avx512f", avx512_multiply_add, chains * 16 * 2.0,
                               avx512_exponentials, avx512_read};
  static const CpuLoops avx2{"avx2", avx2_multiply_add, chains * 8 * 2.0, avx2_exponentials,
                             avx2_read};
  if (__builtin_cpu_supports("avx512f")) return avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return avx2;
#elif defined(__aarch64__)
  static const CpuLoops neon{"neon", neon_multiply_add, neon_chains * 4 * 2.0, neon_exponentials,
                             neon_read};
  return neon;
#endif
  return portable_loops();
}

}  // namespace attnbench::measure
