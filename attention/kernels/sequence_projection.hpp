// Linformer's projections along the sequence on the CPU: sums of tokens by weights of their
// positions,
//   y_l = sum_t e_{l,t} x_t.   Wang et al. 2020, equation 7. Forward alone.
// See softmax.hpp for the shape of a kernel family.
#pragma once

#include <cstddef>
#include <cstdint>

#include "attention/kernels/rows.hpp"
#include "attention/kernels/team.hpp"

namespace attnbench::kernels {

struct SequenceProjectionSizes {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t length = 0;
  std::int64_t slots = 1;  ///< L
  std::int64_t dim = 0;
};

template <class T>
struct SequenceProjectionArguments {
  Rows<const T> tokens;            ///< [batch, heads, length, dim]
  Rows<const Compute<T>> weights;  ///< [1, heads, slots, length]
  /// [batch, length], rows apart by mask_stride; 0 hides the token. Null = all are real.
  const std::uint8_t* key_mask = nullptr;
  std::int64_t mask_stride = 0;
  Rows<Compute<T>> out;  ///< [batch, heads, slots, dim]
};

template <class T>
std::size_t sequence_projection_bytes(const SequenceProjectionSizes& sizes, int threads);
template <class T>
void sequence_projection(const SequenceProjectionSizes& sizes,
                         const SequenceProjectionArguments<T>& arguments, ThreadTeam& team,
                         void* workspace, std::size_t workspace_bytes);

}  // namespace attnbench::kernels
