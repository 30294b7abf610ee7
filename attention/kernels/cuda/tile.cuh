// Tiles of numbers in shared memory, and the fragments of matrices that tensor cores take from them
// (see mma_sm80.cuh). A number is the sum of two of bf16, `high` and `low`: 16 bits of it, within
// the range of a float. Products leave out low times low.
#pragma once

#include <cstdint>

#include "attention/kernels/cuda/mma_sm80.cuh"

namespace attnbench::kernels::cuda {

using Word = std::uint32_t;

struct Operand {
  Word high[4], low[4];
};

__device__ inline void split_pair(float x, float y, Word& high, Word& low) {
  high = pack_pair<BFloat16>(x, y);
  low =
      pack_pair<BFloat16>(x - __uint_as_float(high << 16), y - __uint_as_float(high & 0xffff0000u));
}

/// x += a b, y += a b', with b and b' side by side (see Fragments).
__device__ inline void multiply_add(float (&x)[4], float (&y)[4], const Operand& a,
                                    const Operand& b) {
  multiply_add<BFloat16>(x, a.high, b.low[0], b.low[1]);
  multiply_add<BFloat16>(x, a.low, b.high[0], b.high[1]);
  multiply_add<BFloat16>(x, a.high, b.high[0], b.high[1]);
  multiply_add<BFloat16>(y, a.high, b.low[2], b.low[3]);
  multiply_add<BFloat16>(y, a.low, b.high[2], b.high[3]);
  multiply_add<BFloat16>(y, a.high, b.high[2], b.high[3]);
}

/// 64 rows of `Columns` numbers, 64 or 128. Pieces of 16 bytes are permuted within a row so that
/// the eight rows of a matrix that is loaded at once lie in different banks.
template <int Columns>
struct Tile {
  static constexpr int half = 64 * Columns * 2;  ///< bytes of all high numbers; the low ones follow
  static constexpr int bytes = 2 * half;
  unsigned char* data;

  __device__ static int offset(int row, int column) {
    return row * Columns * 2 + ((column >> 3) ^ (row & 7)) * 16 + (column & 7) * 2;
  }
  __device__ void put(int row, int column, float x) const {
    unsigned char* const at = data + offset(row, column);
    Word high, low;
    split_pair(x, 0, high, low);
    reinterpret_cast<BFloat16*>(at)->bits = static_cast<std::uint16_t>(high);
    reinterpret_cast<BFloat16*>(at + half)->bits = static_cast<std::uint16_t>(low);
  }
  /// Two numbers, the first in an even column.
  __device__ void put(int row, int column, float x, float y) const {
    unsigned char* const at = data + offset(row, column);
    split_pair(x, y, *reinterpret_cast<Word*>(at), *reinterpret_cast<Word*>(at + half));
  }
};

/// Fragments of 16 x 16 of a tile, whose rows and columns begin at multiples of 16. A lane's
/// address for the first of them, and the steps to others: the permutation makes them an exclusive
/// or.
template <int Columns>
class Fragments {
 public:
  __device__ explicit Fragments(const Tile<Columns>& tile) {
    const int lane = static_cast<int>(threadIdx.x & 31);
    const Word base = shared_address(tile.data);
    straight_ = base + Tile<Columns>::offset(lane & 15, (lane >> 4) * 8);
    crossed_ = base + Tile<Columns>::offset((lane & 7) + (lane >> 4) * 8, ((lane >> 3) & 1) * 8);
  }
  /// A left operand, X[row + i][column + k] at (i, k).
  __device__ Operand left(int row, int column) const { return load(straight_, row, column); }
  /// A left operand, X[row + k][column + i] at (i, k).
  __device__ Operand left_transposed(int row, int column) const {
    return load_transposed(crossed_, row, column);
  }
  /// Two right operands [16, 8] side by side, X[row + n][column + k] at (k, n): words 0 and 1 are
  /// the first 8 columns n, 2 and 3 the next.
  __device__ Operand right(int row, int column) const { return load(crossed_, row, column); }
  /// The same, X[row + k][column + n] at (k, n).
  __device__ Operand right_transposed(int row, int column) const {
    return load_transposed(straight_, row, column);
  }

 private:
  __device__ static Word step(Word lane, int row, int column) {
    const int bytes = 2 * column;
    return (lane ^ static_cast<Word>(bytes & 127)) +
           static_cast<Word>((bytes & ~127) + row * Columns * 2);
  }
  __device__ static Operand load(Word lane, int row, int column) {
    const Word at = step(lane, row, column);
    Operand to;
    load_matrices(to.high, at);
    load_matrices(to.low, at + Tile<Columns>::half);
    return to;
  }
  __device__ static Operand load_transposed(Word lane, int row, int column) {
    const Word at = step(lane, row, column);
    Operand to;
    load_matrices_transposed(to.high, at);
    load_matrices_transposed(to.low, at + Tile<Columns>::half);
    return to;
  }
  Word straight_, crossed_;
};

}  // namespace attnbench::kernels::cuda
