// SS, the selective scan on the CPU: what Mamba is made of,
//   h_t,n = exp(rate_n delta_t) h_{t-1},n + delta_t x_t B_t,n,   y_t = sum_n C_t,n h_t,n,
// for each channel, with a state of `rows` numbers. See
// attention/algorithms/selective_scan/selective_scan.hpp, and softmax.hpp for the shape of a kernel
// family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

struct SelectiveScanSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t groups = 1;  ///< of neighbouring heads that share inputs and reads; divides heads
  std::int64_t length = 0;
  std::int64_t rows = 0;   ///< of a channel's state, N
  std::int64_t width = 0;  ///< channels of a head
};

/// For float and double.
template <class R>
struct SelectiveScanArguments {
  Rows<const R> step;       ///< delta [batch, heads, length, width], at least 0
  Rows<const R> values;     ///< x, likewise of any sign
  Rows<const R> input;      ///< B [batch, groups, length, rows]
  Rows<const R> read;       ///< C [batch, groups, length, rows]
  const R* rate = nullptr;  ///< [heads, rows, width], dense, at most 0
  Rows<R> out;              ///< [batch, heads, length, width], apart from the inputs
  /// [batch, groups, rows, heads / groups * width], dense; continued from and advanced in place.
  /// Null: nothing came before, and nothing is kept.
  R* memory = nullptr;
};

template <class R>
std::size_t selective_scan_forward_bytes(const SelectiveScanSizes& sizes, int threads);
template <class R>
void selective_scan_forward(const SelectiveScanSizes& sizes,
                            const SelectiveScanArguments<R>& arguments, ThreadTeam& team,
                            void* workspace, std::size_t workspace_bytes);

/// Gradients from that of `out`, without a memory. Written, not added to, apart from the inputs.
template <class R>
struct SelectiveScanGradients {
  Rows<const R> d_out;
  Rows<R> d_step;
  Rows<R> d_values;
  Rows<R> d_input;
  Rows<R> d_read;
  R* d_rate = nullptr;  ///< [batch, heads, rows, width], dense: of each sequence apart
};

template <class R>
std::size_t selective_scan_backward_bytes(const SelectiveScanSizes& sizes, int threads);
template <class R>
void selective_scan_backward(const SelectiveScanSizes& sizes,
                             const SelectiveScanArguments<R>& arguments,
                             const SelectiveScanGradients<R>& gradients, ThreadTeam& team,
                             void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
