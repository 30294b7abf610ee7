// Tiles of 16-bit numbers in shared memory, from 32 columns on, and the fragments of matrices that
// the recurrent kernels take from them.
#pragma once

#include <cuda_fp16.h>

#include <cstdint>

#include "attention/kernels/cuda/mma_sm80.cuh"

namespace attnbench::kernels::cuda {

using Word = std::uint32_t;

/// Rows of `Columns` numbers. Its pieces of 16 bytes are permuted within a row so that the eight
/// rows of a matrix that is loaded at once lie in different banks.
template <int Columns>
struct Tile {
  static constexpr int pieces = Columns / 8;
  unsigned char* data;

  __device__ static int offset(int row, int column) {
    int piece = column >> 3;
    if constexpr (pieces >= 8) {
      piece ^= row & 7;
    } else if constexpr (pieces == 4) {
      piece ^= (row >> 1) & 3;
    } else {
      piece ^= (row >> 2) & 1;
    }
    return row * Columns * 2 + piece * 16 + (column & 7) * 2;
  }
  /// Two numbers, the first in an even column.
  __device__ Word& pair(int row, int column) const {
    return *reinterpret_cast<Word*>(data + offset(row, column));
  }
  __device__ uint4& piece(int row, int index) const {
    return *reinterpret_cast<uint4*>(data + offset(row, 8 * index));
  }
  __device__ Word address(int row, int column) const {
    return shared_address(data + offset(row, column));
  }
};

/// What the kernels must know of a type of numbers beside mma_sm80.cuh.
template <class T>
struct Operand;

template <>
struct Operand<BFloat16> {
  static constexpr bool narrow = false;  // whether it has fewer exponents than a float
  static constexpr float shrink = 1;     // on sums of products, lest they overflow
  static constexpr float lift = 0;       // see below
  __device__ static float low(Word x) { return __uint_as_float(x << 16); }
  __device__ static float high(Word x) { return __uint_as_float(x & 0xffff0000u); }
};

template <>
struct Operand<Half> {
  static constexpr bool narrow = true;
  static constexpr float shrink = 0x1p-6F;
  /// Exponentials that are summed over tokens are at most 2^lift: what falls below the least
  /// number, or is rounded to one of few digits, is then at most 2^-40 of the greatest, and at most
  /// 2^-10 for as many tokens as there may be (2^30).
  static constexpr float lift = 15;
  __device__ static float low(Word x) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(x & 0xffffu)));
  }
  __device__ static float high(Word x) {
    return __half2float(__ushort_as_half(static_cast<unsigned short>(x >> 16)));
  }
};

/// The same number, of which the compiler cannot tell: what is computed of it is not kept in
/// registers from one turn of a loop to the next, where they are dear and it is cheap.
__device__ inline Word anew(Word x) {
#ifndef ATTNBENCH_EMULATED
  asm volatile("" : "+r"(x));
#endif
  return x;
}

/// What is loaded after this is not loaded before it.
__device__ inline void in_order() {
#ifndef ATTNBENCH_EMULATED
  asm volatile("" ::: "memory");
#endif
}

/// Fragments of 16 x 16 of a tile, whose rows and columns begin at multiples of 16. A lane's
/// address for the first of them, and the steps to others: the permutation makes them an exclusive
/// or.
template <int Columns>
class Fragments {
 public:
  __device__ explicit Fragments(const Tile<Columns>& tile) {
    const int lane = static_cast<int>(threadIdx.x & 31);
    const Word base = tile.address(0, 0);
    straight_ = anew(base + Tile<Columns>::offset(lane & 15, (lane >> 4) * 8));
    crossed_ =
        anew(base + Tile<Columns>::offset((lane & 7) + (lane >> 4) * 8, ((lane >> 3) & 1) * 8));
  }
  /// A left operand, X[row + i][column + k] at (i, k).
  __device__ void left(Word (&to)[4], int row, int column) const {
    load_matrices(to, step(straight_, row, column));
  }
  /// A left operand, X[row + k][column + i] at (i, k).
  __device__ void left_transposed(Word (&to)[4], int row, int column) const {
    load_matrices_transposed(to, step(crossed_, row, column));
  }
  /// Two right operands [16, 8] side by side, X[row + n][column + k] at (k, n): words 0 and 1 are
  /// the first 8 columns n, 2 and 3 the next.
  __device__ void right(Word (&to)[4], int row, int column) const {
    load_matrices(to, step(crossed_, row, column));
  }
  /// The same, X[row + k][column + n] at (k, n).
  __device__ void right_transposed(Word (&to)[4], int row, int column) const {
    load_matrices_transposed(to, step(straight_, row, column));
  }

 private:
  __device__ static Word step(Word lane, int row, int column) {
    constexpr int wide = Columns * 2 < 128 ? Columns * 2 : 128;
    const int bytes = 2 * column;
    return (lane ^ static_cast<Word>(bytes & (wide - 1))) +
           static_cast<Word>((bytes & ~(wide - 1)) + row * Columns * 2);
  }
  Word straight_, crossed_;
};

}  // namespace attnbench::kernels::cuda
