// Vectors of whatever width the machine has, and the choice between them at run time.
//
// A kernel is a template over the width in bytes, forced inline into one function per instruction
// set, or into several by `Apart`; `best_isa` says which to call. Nothing is built with
// -march=native, so that one program runs everywhere. Include this only in the .cpp files of
// kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>

#include "attention/kernels/rows.hpp"

#define ATTNBENCH_INLINE __attribute__((always_inline)) inline
#define ATTNBENCH_INLINE_LAMBDA __attribute__((always_inline))
#if defined(__x86_64__)
#define ATTNBENCH_AVX2 __attribute__((target("avx2,fma")))
#define ATTNBENCH_AVX512 __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx2,fma")))
#define ATTNBENCH_AVX512_BF16 \
  __attribute__((target("avx512f,avx512dq,avx512bw,avx512vl,avx512bf16,avx2,fma")))
#else
#define ATTNBENCH_AVX2
#define ATTNBENCH_AVX512
#endif

namespace attnbench::kernels {

/// The bytes of a vector: of what every processor has (SSE2, NEON), of AVX2 and of AVX-512. On
/// other processors all are the first, so that each function exists in one form.
constexpr int baseline_bytes = 16;
#if defined(__x86_64__)
constexpr int avx2_bytes = 32;
constexpr int avx512_bytes = 64;
#else
constexpr int avx2_bytes = baseline_bytes;
constexpr int avx512_bytes = baseline_bytes;
#endif

/// Whether vectors of Bytes have 32 registers, as in AVX-512 and NEON, or 16.
template <int Bytes>
#if defined(__aarch64__)
constexpr bool has_32_registers = true;
#else
constexpr bool has_32_registers = Bytes == avx512_bytes;
#endif

constexpr double log2_of_e = 1.4426950408889634;
constexpr double ln_of_2 = 0.6931471805599453;

template <class R>
struct Exponential;

/// 2^f on [-1/2, 1/2], interpolated at the Chebyshev nodes: relative error 2.6e-9.
template <>
struct Exponential<float> {
  using Int = std::uint32_t;                        // wraps where the result is thrown away
  static constexpr float to_integer = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
  static constexpr int mantissa = 23;
  static constexpr float least = -126.0f;
  static constexpr float coefficients[] = {0.0001546144469856913f,
                                           0.0013400428177615838f,
                                           0.009618056678524637f,
                                           0.05550327226670302f,
                                           0.24022650922288757f,
                                           0.6931472067028326f,
                                           1.0f};
};

/// 2^f on [0, 1), the least greatest relative error: 7.0e-8 by degree 5 among those that are exact
/// at 0, little more than a rounding; 7.5e-5 by degree 3, for what is rounded to bfloat16. Exact at
/// 0, since a memory that is decayed by 2^0 with every block would vanish in a long stream.
template <int Degree>
struct FractionPower;
template <>
struct FractionPower<5> {
  static constexpr float coefficients[] = {0.001868956373F, 0.009014884941F, 0.05579930171F,
                                           0.2401656508F,   0.6931510568F,   1.0F};
};
template <>
struct FractionPower<3> {
  static constexpr float coefficients[] = {0.0780245215F, 0.2260671616F, 0.6958335638F,
                                           0.9999251962F};
};

/// Relative error 4.3e-18.
template <>
struct Exponential<double> {
  using Int = std::uint64_t;
  static constexpr double to_integer = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr int mantissa = 52;
  static constexpr double least = -1022.0;
  static constexpr double coefficients[] = {
      4.4558179083360645e-10, 7.074194297288521e-09,  1.0178057087733941e-07,
      1.3215432535912375e-06, 1.5252733841556773e-05, 0.00015403530463724353,
      0.001333355814640647,   0.009618129107587256,   0.055504108664821625,
      0.24022650695910158,    0.6931471805599453,     1.0};
};

template <class R, int Bytes>
struct Simd {
  using Int = typename Exponential<R>::Int;
  typedef R Vector __attribute__((vector_size(Bytes), may_alias));
  typedef Int Integers __attribute__((vector_size(Bytes), may_alias));
  static constexpr int lanes = Bytes / static_cast<int>(sizeof(R));

  static ATTNBENCH_INLINE Vector load(const R* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  }
  /// bfloat16 is the upper half of a float.
  static ATTNBENCH_INLINE Vector load(const BFloat16* from) {
    typedef std::uint16_t Halves __attribute__((vector_size(Bytes / 2), may_alias));
    Halves halves;
    std::memcpy(&halves, from, sizeof halves);
    const Integers bits = __builtin_convertvector(halves, Integers) << 16;
    return reinterpret_cast<const Vector&>(bits);
  }
  static ATTNBENCH_INLINE void store(R* to, Vector v) { std::memcpy(to, &v, sizeof v); }
  static ATTNBENCH_INLINE Vector broadcast(R x) { return Vector{} + x; }
  static ATTNBENCH_INLINE Vector max(Vector a, Vector b) { return a > b ? a : b; }
  /// b where a is NaN.
  static ATTNBENCH_INLINE Vector min(Vector a, Vector b) { return a < b ? a : b; }

  /// 2^x for x <= 0, below the normal numbers 0, of NaN NaN. Values slightly above 0 are fine too.
  /// float: at most 2.5e-7 off, relatively; double: 5e-16.
  static ATTNBENCH_INLINE Vector exp2(Vector x) {
#if defined(__x86_64__)
    if constexpr (Bytes == 64 && std::is_same_v<R, float>) return exp2_by_scaling(x);
#endif
    using E = Exponential<R>;
    const Vector shifted = x + E::to_integer;
    const Vector fraction = x - (shifted - E::to_integer);
    Vector y = broadcast(E::coefficients[0]);
    for (std::size_t i = 1; i < sizeof E::coefficients / sizeof(R); ++i) {
      y = y * fraction + E::coefficients[i];
    }
    const Integers scaled = reinterpret_cast<Integers&>(y) +
                            (reinterpret_cast<const Integers&>(shifted) << E::mantissa);
    const auto tiny = x < E::least;  // a NaN is not, and stays one
    const Integers result = scaled & ~reinterpret_cast<const Integers&>(tiny);
    return reinterpret_cast<const Vector&>(result);
  }
#if defined(__x86_64__)
  /// In 10 instructions where bits take 13: AVX-512 can take a fraction and scale by a power of 2.
  /// In assembly, because an intrinsic cannot be inlined into a function that does not itself name
  /// the instruction set.
  template <int Degree = 5>
  static ATTNBENCH_INLINE Vector exp2_by_scaling(Vector x) {
    constexpr auto& coefficients = FractionPower<Degree>::coefficients;
    Vector fraction;
    asm("vreduceps $9, %1, %0" : "=v"(fraction) : "v"(x));  // x - floor(x)
    Vector y = broadcast(coefficients[0]);
    for (int i = 1; i <= Degree; ++i) y = y * fraction + coefficients[i];
    Vector result;
    asm("vcmpps $0x15, %3, %2, %%k1\n\t"  // not below the least: a NaN stays one
        "vscalefps %2, %1, %0%{%%k1%}%{z%}"
        : "=v"(result)
        : "v"(y), "v"(x), "v"(broadcast(Exponential<float>::least))
        : "k1");
    return result;
  }
#endif

  /// Every second number from the lower (Half = 0) or upper (1) halves of a and b.
  template <int Half, std::size_t... I>
  static ATTNBENCH_INLINE Vector interleave(Vector a, Vector b, std::index_sequence<I...>) {
    return __builtin_shufflevector(a, b, (I % 2 * lanes + I / 2 + Half * lanes / 2)...);
  }
  /// Rows become columns.
  static ATTNBENCH_INLINE void transpose(Vector (&rows)[lanes]) {
    constexpr auto all_lanes = std::make_index_sequence<lanes>{};
#pragma GCC unroll 4
    for (int step = 1; step < lanes; step *= 2) {
      Vector next[lanes];
#pragma GCC unroll 8
      for (int i = 0; i < lanes / 2; ++i) {
        next[2 * i] = interleave<0>(rows[i], rows[i + lanes / 2], all_lanes);
        next[2 * i + 1] = interleave<1>(rows[i], rows[i + lanes / 2], all_lanes);
      }
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) rows[i] = next[i];
    }
  }
  /// 1 / x for normal numbers above 0, within 1.5 roundings.
  static ATTNBENCH_INLINE Vector reciprocal(Vector x) {
#if defined(__x86_64__)
    if constexpr (Bytes == 64 && std::is_same_v<R, float>) {
      Vector guess;  // within 2^-14, and a step of Newton's squares that: division takes 16 cycles
      asm("vrcp14ps %1, %0" : "=v"(guess) : "v"(x));
      return guess + guess * (R{1} - x * guess);
    }
#endif
    return R{1} / x;
  }
  /// By halves.
  static ATTNBENCH_INLINE R sum(Vector v) {
    if constexpr (Bytes == 16) {
      R total = v[0];
      for (int i = 1; i < lanes; ++i) total += v[i];
      return total;
    } else {
      return Half::sum(half<0>(v) + half<1>(v));
    }
  }
  static ATTNBENCH_INLINE R greatest(Vector v) {
    if constexpr (Bytes == 16) {
      R best = v[0];
      for (int i = 1; i < lanes; ++i) best = v[i] > best ? v[i] : best;
      return best;
    } else {
      return Half::greatest(Half::max(half<0>(v), half<1>(v)));
    }
  }

 private:
  using Half = Simd<R, (Bytes > 16 ? Bytes / 2 : Bytes)>;
  template <int Which>
  static ATTNBENCH_INLINE typename Half::Vector half(Vector v) {
    return half_of<Which * lanes / 2>(v, std::make_integer_sequence<int, lanes / 2>{});
  }
  template <int First, int... I>
  static ATTNBENCH_INLINE typename Half::Vector half_of(Vector v,
                                                        std::integer_sequence<int, I...>) {
    return __builtin_shufflevector(v, v, First + I...);
  }
};

/// A function of its own for vectors of Bytes, of what it is given: there forcing inline ends. A
/// body that several places reach is compiled once.
template <int Bytes>
struct Apart {
  template <class Body>
  [[gnu::noinline]] static void call(const Body& body) {
    body();
  }
};
#if defined(__x86_64__)
template <>
struct Apart<avx2_bytes> {
  template <class Body>
  ATTNBENCH_AVX2 [[gnu::noinline]] static void call(const Body& body) {
    body();
  }
};
template <>
struct Apart<avx512_bytes> {
  template <class Body>
  ATTNBENCH_AVX512 [[gnu::noinline]] static void call(const Body& body) {
    body();
  }
};
#endif

/// `count` rounded up to whole vectors of the widest kind, whatever the machine.
constexpr std::int64_t padded(std::int64_t count, std::size_t element_bytes) {
  const auto lanes = static_cast<std::int64_t>(64 / element_bytes);
  return (count + lanes - 1) / lanes * lanes;
}

/// neon: that of aarch64, whose processors all have it: there it is the baseline. avx512_bf16:
/// AVX-512 with AVX512_BF16 and AVX512_VBMI, on AMD's processors; amx: AMX_BF16 beside them. Both
/// are of use to bfloat16 kernels alone.
enum class Isa { baseline, neon, avx2, avx512, avx512_bf16, amx };

/// The widest instruction set that this machine has and `limit_isa` allows.
Isa best_isa();
/// For tests: nothing wider than `isa` from now on, in the whole process.
void limit_isa(Isa isa);

/// The function among three that this machine should call.
template <class Function>
Function pick(Function baseline, Function avx2, Function avx512) {
  const Isa isa = best_isa();
  if (isa >= Isa::avx512) return avx512;
  return isa == Isa::avx2 ? avx2 : baseline;
}

}  // namespace attnbench::kernels

// Explicit instances of a kernel, INSTANTIATE being a macro of a type, or of one and a vector's
// bytes.
#define ATTNBENCH_FOR_TYPES(INSTANTIATE) \
  INSTANTIATE(float) INSTANTIATE(double) INSTANTIATE(BFloat16)
#if defined(__x86_64__)
#define ATTNBENCH_FOR_WIDTHS(INSTANTIATE, T) \
  INSTANTIATE(T, 16) INSTANTIATE(T, 32) INSTANTIATE(T, 64)
#else
#define ATTNBENCH_FOR_WIDTHS(INSTANTIATE, T) INSTANTIATE(T, 16)
#endif
#define ATTNBENCH_FOR_REALS(INSTANTIATE)   \
  ATTNBENCH_FOR_WIDTHS(INSTANTIATE, float) \
  ATTNBENCH_FOR_WIDTHS(INSTANTIATE, double)
