// Softmax over a band of keys by its definition: what the references of softmax and window share.
#pragma once

#include "attention/reference/reference.hpp"

namespace attnbench::reference {

/// Rows of softmax(scale q.k) v over the real keys s with t + offset - left <= s <= t + offset +
/// right; scale 0 means 1/sqrt of the width of q. No key: 0.
std::vector<double> band_rows(const ReferenceInputs& inputs, const std::vector<RowIndex>& rows,
                              double scale, std::int64_t left, std::int64_t right,
                              std::int64_t offset);

}  // namespace attnbench::reference
