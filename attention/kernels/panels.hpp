// The numbers of a block of tokens as the scan reads them: in panels a cache line wide, so that
// what a tile of the scan reads lies in as few lines as possible, evenly over the sets of the first
// cache. Rows of a power of two would meet in a few of them.
#pragma once

#include <algorithm>
#include <type_traits>

#include "attention/kernels/stored.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Columns of a panel: one of the widest vectors.
template <class R>
constexpr std::int64_t panel_columns = 64 / static_cast<std::int64_t>(sizeof(R));

template <class R>
struct Panels {
  R* data = nullptr;
  std::int64_t stride = 0;  ///< from one panel to the next

  ATTNBENCH_INLINE R* at(std::int64_t t, std::int64_t c) const {
    constexpr std::int64_t width = panel_columns<R>;
    return data + c / width * stride + t * width + c % width;
  }
  operator Panels<const R>() const { return {data, stride}; }
};

/// Numbers in the panels of a block.
template <class R>
constexpr std::int64_t panel_numbers(std::int64_t tokens, std::int64_t columns) {
  return (columns + panel_columns<R> - 1) / panel_columns<R> * panel_columns<R> * tokens;
}

template <class R>
Panels<R> take_panels(Workspace& space, std::int64_t tokens, std::int64_t columns) {
  return {space.take<R>(panel_numbers<R>(tokens, columns)), tokens * panel_columns<R>};
}

/// `count` numbers of a row times `factor`, and zeros up to whole vectors, as token t of panels.
template <class T, int Bytes>
ATTNBENCH_INLINE void put_row(const T* from, std::int64_t count, Compute<T> factor,
                              const Panels<Compute<T>>& to, std::int64_t t) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  R* panel = to.data + t * panel_columns<R>;
  std::int64_t c = 0;
  for (; c + panel_columns<R> <= count; c += panel_columns<R>, panel += to.stride) {
#pragma GCC unroll 4
    for (std::int64_t i = 0; i < panel_columns<R>; i += S::lanes) {
      S::store(panel + i, factor * Stored<T, Bytes>::load(from + c + i));
    }
  }
  if (c == count) return;
  widen_row<T, Bytes>(from + c, count - c, factor, panel, panel_columns<R>, R{0});
}

/// Columns [column, column + columns) of the values of `tokens` tokens, each times its factor where
/// there are factors; 0 for a hidden one, whatever stands there.
template <class T, int Bytes>
ATTNBENCH_INLINE void put_values(const Rows<const T>& values, const std::uint8_t* mask,
                                 std::int64_t b, std::int64_t h, std::int64_t column,
                                 std::int64_t columns, std::int64_t t0, std::int64_t tokens,
                                 const Panels<Compute<T>>& to,
                                 const Compute<T>* factors = nullptr) {
  using R = Compute<T>;
  for (std::int64_t t = 0; t < tokens; ++t) {
    if (mask != nullptr && mask[t0 + t] == 0) {
      for (std::int64_t c = 0; c < columns; c += panel_columns<R>) {
        std::fill_n(to.at(t, c), panel_columns<R>, R{0});
      }
    } else {
      const R factor = factors == nullptr ? R{1} : factors[t];
      put_row<T, Bytes>(values.at(b, h, t0 + t) + column, columns, factor, to, t);
    }
  }
}

}  // namespace attnbench::kernels
