// What the kernels of the softmax family are given, in 32 bits where that is enough, and the choice
// of the kernel. Inside the family only; plain C++, tested without a device.
#pragma once

#include <cmath>
#include <stdexcept>
#include <string>

#include "attention/kernels/cuda/device.hpp"
#include "attention/kernels/cuda/softmax/band.hpp"
#include "attention/kernels/cuda/softmax/split.hpp"

namespace attnbench::kernels::cuda {

/// The sizes as kernels read them. `scale` is the size of the logit's factor times log2(e), never
/// 0; `negative` says that its sign is minus.
struct SoftmaxShape {
  Band band;
  int heads = 1;
  int group = 1;  ///< query heads of one key head
  int kv_heads = 1;
  int batch = 1;
  int head_dim = 0;
  int value_dim = 0;
  float scale = 1;
  bool negative = false;
  float true_scale = 1;  ///< the logit's factor itself

  SoftmaxShape() = default;
  explicit SoftmaxShape(const SoftmaxSizes& sizes)
      : band(sizes),
        heads(static_cast<int>(sizes.heads)),
        group(static_cast<int>(sizes.heads / sizes.kv_heads)),
        kv_heads(static_cast<int>(sizes.kv_heads)),
        batch(static_cast<int>(sizes.batch)),
        head_dim(static_cast<int>(sizes.head_dim)),
        value_dim(static_cast<int>(sizes.value_dim)),
        // A factor of 0 would turn the minus infinity of a hidden key into NaN.
        scale(static_cast<float>(std::fmax(std::fabs(sizes.scale) * 1.4426950408889634, 1e-30))),
        negative(sizes.scale < 0),
        true_scale(static_cast<float>(sizes.scale)) {}
};

/// Whether asynchronous copies of 16 bytes reach every row.
template <class T>
bool aligned(const Rows<T>& rows, std::int64_t width) {
  constexpr std::int64_t unit = 16 / static_cast<std::int64_t>(sizeof(T));
  return reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0 && rows.row_stride % unit == 0 &&
         rows.head_stride % unit == 0 && rows.batch_stride % unit == 0 && width % unit == 0;
}

template <class T>
bool aligned(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments) {
  return aligned(arguments.q, sizes.head_dim) && aligned(arguments.k, sizes.head_dim) &&
         aligned(arguments.v, sizes.value_dim) && aligned(arguments.out, sizes.value_dim);
}

/// Throws std::logic_error where a block of this card has less shared memory than a kernel's tiles
/// take.
inline void require_shared(std::size_t bytes) {
  if (bytes <= card().shared_bytes) return;
  throw std::logic_error("softmax on CUDA: tiles of this width take " + std::to_string(bytes) +
                         " bytes of shared memory, and a block of this card has " +
                         std::to_string(card().shared_bytes));
}

/// The least of the tiles' widths, 64, 128 and 256, that holds both.
inline int tile_width(const SoftmaxSizes& sizes) {
  const std::int64_t width = std::max(sizes.head_dim, sizes.value_dim);
  return width <= 64 ? 64 : width <= 128 ? 128 : 256;
}

/// Whether the kernel of few queries is taken: where it is expected to end first, and where the
/// card's blocks have the shared memory for it.
inline bool takes_split(const SoftmaxSizes& sizes, const Card& card) {
  const auto bytes = static_cast<std::size_t>(SplitTiles::shared_bytes(tile_width(sizes)));
  return bytes <= card.shared_bytes && prefers_split(sizes, card.multiprocessors);
}

/// What the gradients' kernels are given. A query's two numbers lie at head * padded_length + t;
/// `padded_length` is a multiple of 128, and past `length` lse is +infinity, so that every weight
/// there is 0.
template <class T>
struct SoftmaxBackwardCall {
  SoftmaxArguments<T> arrays;
  SoftmaxGradients<T> gradients;
  SoftmaxShape shape;
  int padded_length = 0;
  float* lse = nullptr;    ///< times log2(e)
  float* delta = nullptr;  ///< sum over the value's columns of d_out * out
};

template <class T>
bool aligned(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call) {
  return aligned(sizes, call.arrays) && aligned(call.gradients.d_out, sizes.value_dim) &&
         aligned(call.gradients.dq, sizes.head_dim) && aligned(call.gradients.dk, sizes.head_dim) &&
         aligned(call.gradients.dv, sizes.value_dim);
}

/// The rows of queries that the gradients' kernels count in.
inline std::int64_t padded_length(const SoftmaxSizes& sizes) {
  return (sizes.length + 127) / 128 * 128;
}

// The kernels below take any sizes that are not refused, batch and length > 0. Those of sm80
// multiply on the tensor cores, T = BFloat16 or Half.

template <class T>
void softmax_forward_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                          Stream stream);
/// Few queries: the keys of one tile of queries are dealt to split.parts blocks, whose results
/// softmax_combine puts together where parts > 1; `partial` is then not null.
template <class T>
void softmax_forward_split_sm80(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                                const SoftmaxSplit& split, const SoftmaxPartial& partial,
                                Stream stream);
/// On the CUDA cores, any number of queries; parts as above.
void softmax_forward_float(const SoftmaxSizes& sizes, const SoftmaxArguments<float>& arguments,
                           const SoftmaxSplit& split, const SoftmaxPartial& partial, Stream stream);
/// Writes out and lse from the parts.
template <class T>
void softmax_combine(const SoftmaxSizes& sizes, const SoftmaxArguments<T>& arguments,
                     const SoftmaxSplit& split, const SoftmaxPartial& partial, Stream stream);

/// Writes call.lse and call.delta, which the two after it read; T may also be float.
template <class T>
void softmax_delta(const SoftmaxBackwardCall<T>& call, Stream stream);
/// Writes dk and dv; key_length > 0.
template <class T>
void softmax_backward_keys_sm80(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call,
                                Stream stream);
/// Writes dq.
template <class T>
void softmax_backward_queries_sm80(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<T>& call,
                                   Stream stream);
/// All three gradients, on the CUDA cores.
void softmax_backward_float(const SoftmaxSizes& sizes, const SoftmaxBackwardCall<float>& call,
                            Stream stream);

}  // namespace attnbench::kernels::cuda
