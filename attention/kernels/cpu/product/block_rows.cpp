#include "attention/kernels/cpu/product/block_rows.hpp"

#include <algorithm>

#include "attention/kernels/cpu/simd/joined_rows.hpp"
#include "attention/kernels/cpu/simd/stored.hpp"

namespace attnbench::kernels {
namespace {

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

}  // namespace

template <class T, int Bytes>
Operand<Compute<T>> open_rows(const Rows<const T>& rows, const std::uint8_t* mask,
                              const BlockPlace& place, std::int64_t width, Compute<T> factor,
                              Compute<T> beyond, Compute<T>* room, std::int64_t stride) {
  if constexpr (std::is_same_v<T, Compute<T>>) {
    if (mask == nullptr && width == stride && factor > 0) {
      return {rows.at(place.b, place.h, place.t0), rows.row_stride, factor};
    }
  }
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    for (std::int64_t t = 0; t < place.tokens; ++t) {
      if (mask != nullptr && mask[place.t0 + t] == 0) {
        std::fill_n(room + t * stride, stride, beyond);
      } else {
        widen_row<T, Bytes>(rows.at(place.b, place.h, place.t0 + t), width, factor,
                            room + t * stride, stride, beyond);
      }
    }
  });
  return {room, stride, 1};
}

template <class T, int Bytes>
void load_panels(const Rows<const T>& rows, const std::uint8_t* mask, const BlockPlace& place,
                 std::int64_t column, std::int64_t columns, const Panels<Compute<T>>& to,
                 const Compute<T>* factors) {
  using R = Compute<T>;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    // Copies: for all the compiler knows a store may change what is referred to.
    const Panels<R> panels = to;
    const std::uint8_t* const real = mask == nullptr ? nullptr : mask + place.t0;
    const R* const scales = factors;
    const std::int64_t tokens = place.tokens;
    const std::int64_t stride = rows.row_stride;
    const std::int64_t width = columns;
    const T* row = rows.at(place.b, place.h, place.t0) + column;
    for (std::int64_t t = 0; t < tokens; ++t, row += stride) {
      if (real != nullptr && real[t] == 0) {
        for (std::int64_t c = 0; c < width; c += panel_columns<R>) {
          std::fill_n(panels.at(t, c), panel_columns<R>, R{0});
        }
      } else {
        put_row<T, Bytes>(row, width, scales == nullptr ? R{1} : scales[t], panels, t);
      }
    }
  });
}

template <class T, int Bytes>
void store_panels(const Panels<Compute<T>>& from, const Compute<T>* factors, const Rows<T>& to,
                  const BlockPlace& place, std::int64_t column, std::int64_t columns) {
  using R = Compute<T>;
  using S = Simd<R, Bytes>;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    const Panels<R> panels = from;
    const R* const scales = factors;
    const std::int64_t tokens = place.tokens;
    const std::int64_t stride = to.row_stride;
    const std::int64_t width = columns;
    T* row = to.at(place.b, place.h, place.t0) + column;
    for (std::int64_t t = 0; t < tokens; ++t, row += stride) {
      const R factor = scales == nullptr ? R{1} : scales[t];
      for (std::int64_t d = 0; d < width; d += S::lanes) {
        store_part<T, Bytes>(row + d, factor * S::load(panels.at(t, d)), width - d);
      }
    }
  });
}

template <class R, int Bytes>
void dot_rows(const Panels<R>& a, const Panels<R>& b, std::int64_t tokens, std::int64_t columns,
              bool more, R* parts) {
  using S = Simd<R, Bytes>;
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA {
    // Copies: for all the compiler knows a store may change what is referred to.
    const Panels<R> left = a;
    const Panels<R> right = b;
    const std::int64_t width = columns;
    R* part = parts;
    for (std::int64_t t = 0; t < tokens; ++t, part += S::lanes) {
      auto sum = more ? S::load(part) : S::broadcast(0);
      for (std::int64_t c = 0; c < width; c += S::lanes) {
        sum += S::load(left.at(t, c)) * S::load(right.at(t, c));
      }
      S::store(part, sum);
    }
  });
}

template <class R, int Bytes>
void sum_parts(const R* parts, std::int64_t tokens, R* sums) {
  Apart<Bytes>::call([&]() ATTNBENCH_INLINE_LAMBDA { sum_rows<R, Bytes>(parts, tokens, sums); });
}

#define ATTNBENCH_INSTANTIATE(T, BYTES)                                                         \
  template Operand<Compute<T>> open_rows<T, BYTES>(const Rows<const T>&, const std::uint8_t*,   \
                                                   const BlockPlace&, std::int64_t, Compute<T>, \
                                                   Compute<T>, Compute<T>*, std::int64_t);      \
  template void load_panels<T, BYTES>(const Rows<const T>&, const std::uint8_t*,                \
                                      const BlockPlace&, std::int64_t, std::int64_t,            \
                                      const Panels<Compute<T>>&, const Compute<T>*);            \
  template void store_panels<T, BYTES>(const Panels<Compute<T>>&, const Compute<T>*,            \
                                       const Rows<T>&, const BlockPlace&, std::int64_t,         \
                                       std::int64_t);
#define ATTNBENCH_INSTANTIATE_DOTS(R, BYTES)                                                       \
  template void dot_rows<R, BYTES>(const Panels<R>&, const Panels<R>&, std::int64_t, std::int64_t, \
                                   bool, R*);                                                      \
  template void sum_parts<R, BYTES>(const R*, std::int64_t, R*);
ATTNBENCH_FOR_WIDTHS(ATTNBENCH_INSTANTIATE, float)
ATTNBENCH_FOR_WIDTHS(ATTNBENCH_INSTANTIATE, double)
ATTNBENCH_FOR_WIDTHS(ATTNBENCH_INSTANTIATE, BFloat16)
ATTNBENCH_FOR_REALS(ATTNBENCH_INSTANTIATE_DOTS)

}  // namespace attnbench::kernels
