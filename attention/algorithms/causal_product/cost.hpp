// What the forms of the causal product cost, forward, and its bidirectional counterpart in tensor
// operations; features of inputs as wide as they are.
#pragma once

#include "attention/mechanism.hpp"

namespace attnbench::causal_product {

struct ProductSizes {
  double heads = 1;     ///< batch times heads
  double queries = 1;   ///< T
  double keys = 1;      ///< T, but in the cross pattern
  double features = 1;  ///< F
  double width = 1;     ///< of the values, without the column of ones
  double bytes = 4;     ///< of one element of the inputs
  bool causal = true;
  /// Of one element of what is computed: at least float32.
  double wide_bytes() const { return bytes > 4 ? bytes : 4; }
};

ProductSizes sizes_of(const Problem& problem, double features);

Cost materialised_cost(const ProductSizes& sizes);
Cost scan_cost(const ProductSizes& sizes);
Cost chunked_cost(const ProductSizes& sizes, double chunk);
/// With the threads that LibTorch has now, on which the kernel's workspace depends.
Cost fused_cost(const ProductSizes& sizes, const Problem& problem);

}  // namespace attnbench::causal_product
