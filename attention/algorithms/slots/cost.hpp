// What packing tokens into slots and reading them costs, forward, in the order in which
// attention/algorithms/slots/slots.hpp and the mechanisms on it do it.
#pragma once

#include "attention/mechanism.hpp"

namespace attnbench::slot_memory {

struct Sizes {
  Problem problem;
  double latents = 1;      ///< L, per head
  bool tied = false;       ///< values are the keys
  bool averaging = false;  ///< omega = exp: keys and values are pooled with the same weights

  double heads() const { return static_cast<double>(problem.batch * problem.heads); }
  double queries() const { return static_cast<double>(problem.length); }
  double keys() const { return static_cast<double>(problem.key_length); }
  double width() const { return static_cast<double>(problem.head_dim); }
  double value_width() const { return static_cast<double>(problem.value_dim); }
  /// Of what a slot holds: keys, and values where they are not the keys.
  double columns() const { return width() + (tied ? 0 : value_width()); }
  double bytes() const { return static_cast<double>(bytes_of(problem.dtype)); }
  /// Of one element of what is computed: at least float32.
  double wide_bytes() const { return bytes() > 4 ? bytes() : 4; }
};

/// Softmax over the tokens, then over the slots.
Cost bidirectional_cost(const Sizes& sizes);

/// The causal forms.
Cost materialised_cost(const Sizes& sizes);
Cost chunked_cost(const Sizes& sizes, double chunk);
/// Of `fused`, with the threads that LibTorch has now; and whether its kernels do the problem.
Cost fused_cost(const Sizes& sizes);
Support fused_supports(const Sizes& sizes);

}  // namespace attnbench::slot_memory
