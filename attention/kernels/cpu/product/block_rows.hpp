// A block of tokens between memory and the kernels that compute on it: where numbers as they are
// stored become numbers to compute with, and back. Everything past this is the same for T and for
// Compute<T>. For float, double and BFloat16, vectors of 16, 32 and 64 bytes.
#pragma once

#include "attention/kernels/cpu/recurrent/panels.hpp"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels {

/// A head's tokens from t0 on.
struct BlockPlace {
  std::int64_t b, h, t0, tokens;
};

/// Rows of a block as a family's arithmetic reads them: numbers times `factor`, which is above 0,
/// so that the greatest number makes the greatest product.
template <class R>
struct Operand {
  const R* data;
  std::int64_t stride;
  R factor;
};

/// The rows at `place`, `width` numbers each, to be multiplied by `factor`; `beyond` after them up
/// to whole vectors and, where `mask` hides the token, in all of its row. In place where rows are
/// whole already and the factor is above 0, else in `room` [tokens, stride].
template <class T, int Bytes>
Operand<Compute<T>> open_rows(const Rows<const T>& rows, const std::uint8_t* mask,
                              const BlockPlace& place, std::int64_t width, Compute<T> factor,
                              Compute<T> beyond, Compute<T>* room, std::int64_t stride);

/// Columns [column, column + columns) of the rows at `place`, each row times its factor where there
/// are factors, and zeros up to whole vectors; 0 for a hidden token, whatever stands there.
template <class T, int Bytes>
void load_panels(const Rows<const T>& rows, const std::uint8_t* mask, const BlockPlace& place,
                 std::int64_t column, std::int64_t columns, const Panels<Compute<T>>& to,
                 const Compute<T>* factors = nullptr);

/// The other way: the rows of panels, each times its factor where there are factors.
template <class T, int Bytes>
void store_panels(const Panels<Compute<T>>& from, const Compute<T>* factors, const Rows<T>& to,
                  const BlockPlace& place, std::int64_t column, std::int64_t columns);

/// For each of `tokens` tokens the product of its row of a and its row of b, in parts [tokens,
/// lanes] that are yet to be summed; added to what is there, if `more`.
template <class R, int Bytes>
void dot_rows(const Panels<R>& a, const Panels<R>& b, std::int64_t tokens, std::int64_t columns,
              bool more, R* parts);
/// The sums of parts.
template <class R, int Bytes>
void sum_parts(const R* parts, std::int64_t tokens, R* sums);

}  // namespace attnbench::kernels
