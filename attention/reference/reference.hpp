// The definitions, in double and in plain loops: what every fast form is held against.
//
// One file per mechanism, sharing no code with the mechanism itself, nor using torch. A reference
// computes single output rows, so that a result at any size can be checked at a few of its rows.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/option.hpp"
#include "core/problem.hpp"

namespace attnbench::reference {

/// A dense row-major array of up to four dimensions.
struct Array {
  std::vector<std::int64_t> shape;
  std::vector<double> values;
  /// Start of the last dimension's run at leading indices (b, h, t) of a [B, H, T, w] array.
  const double* row(std::int64_t b, std::int64_t h, std::int64_t t) const {
    return values.data() + ((b * shape[1] + h) * shape[2] + t) * shape[3];
  }
  double* row(std::int64_t b, std::int64_t h, std::int64_t t) {
    return values.data() + ((b * shape[1] + h) * shape[2] + t) * shape[3];
  }
};

/// One row of the output: batch b, head h, query position t.
struct RowIndex {
  std::int64_t b = 0;
  std::int64_t h = 0;
  std::int64_t t = 0;
};

struct ReferenceInputs {
  std::map<std::string, Array> roles;       ///< [B, H, T or S, w] by role name
  std::map<std::string, Array> parameters;  ///< the mechanism's parameters and buffers by name
  std::vector<std::uint8_t> key_mask;       ///< [B * S], 1 where real; empty = all are
  bool visible(std::int64_t b, std::int64_t s, std::int64_t key_length) const {
    return key_mask.empty() || key_mask[static_cast<std::size_t>(b * key_length + s)] != 0;
  }
};

/// The output rows asked for, each of value_dim numbers, one after the other.
using Reference = std::function<std::vector<double>(
    const Options&, const Problem&, const ReferenceInputs&, const std::vector<RowIndex>&)>;

}  // namespace attnbench::reference
