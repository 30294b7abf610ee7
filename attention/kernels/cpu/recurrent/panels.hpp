// The numbers of a block of tokens as the scan reads them: in panels a cache line wide, so that
// what a tile of the scan reads lies in as few lines as possible, evenly over the sets of the first
// cache. Rows of a power of two would meet in a few of them.
#pragma once

#include "attention/kernels/cpu/simd/simd.hpp"
#include "attention/kernels/workspace.hpp"

namespace attnbench::kernels {

/// Columns of a panel: one of the widest vectors.
template <class R>
constexpr std::int64_t panel_columns = 64 / static_cast<std::int64_t>(sizeof(R));

template <class R>
struct Panels {
  R* data = nullptr;
  std::int64_t stride = 0;                ///< from one panel to the next
  std::int64_t token = panel_columns<R>;  ///< from one token to the next

  ATTNBENCH_INLINE R* at(std::int64_t t, std::int64_t c) const {
    constexpr std::int64_t width = panel_columns<R>;
    return data + c / width * stride + t * token + c % width;
  }
  operator Panels<const R>() const { return {data, stride, token}; }
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

}  // namespace attnbench::kernels
