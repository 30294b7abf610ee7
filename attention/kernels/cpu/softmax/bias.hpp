// A learnable bias by distance in the tiled softmax (LAVO, section 3.3; T5): tables of it, and the
// sums of its gradient.
#pragma once

#include <algorithm>

#include "attention/kernels/cpu/softmax/tile.hpp"

namespace attnbench::kernels {

/// Numbers by distance, those included that a tile computes beside the band.
struct BiasRange {
  std::int64_t reach;  ///< -1 where there is no bias
  static constexpr std::int64_t beyond = 4 * panel;

  explicit BiasRange(const SoftmaxSizes& sizes) : reach(sizes.bias_reach) {}
  bool any() const { return reach >= 0; }
  std::int64_t size() const { return any() ? 2 * (reach + beyond) + 1 : 0; }
  /// Where distance 0 lies.
  std::int64_t centre() const { return reach + beyond; }
};

/// Makes a table of the biases in powers of two, 0 beyond the reach, by distance s - t or, where
/// `transposed`, t - s. Returns where distance 0 lies; null without a bias.
template <class R>
const R* bias_table(const BiasRange& range, const R* bias, bool transposed, R* table) {
  if (!range.any()) return nullptr;
  std::fill_n(table, range.size(), R{0});
  for (std::int64_t i = -range.reach; i <= range.reach; ++i) {
    table[range.centre() + (transposed ? -i : i)] =
        bias[i + range.reach] * static_cast<R>(log2_of_e);
  }
  return table + range.centre();
}

/// to[i] += from[i] for whole vectors.
template <class R, int Bytes>
ATTNBENCH_INLINE void add_row(const R* from, std::int64_t count, R* to) {
  using S = Simd<R, Bytes>;
  for (std::int64_t i = 0; i < count; i += S::lanes) {
    S::store(to + i, S::load(to + i) + S::load(from + i));
  }
}

}  // namespace attnbench::kernels
