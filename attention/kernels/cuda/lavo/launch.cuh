// Host side of the running memory: the workspace, the launches.
#pragma once

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/cuda/lavo/calls.hpp"
#include "attention/kernels/cuda/lavo/gradients.cuh"
#include "attention/kernels/cuda/lavo/space.cuh"
#include "attention/kernels/cuda/lavo/step.cuh"
#include "attention/kernels/cuda/lavo/sums.cuh"
#include "attention/kernels/cuda/lavo/tensor_gradients.cuh"
#include "attention/kernels/cuda/lavo/tensor_tokens.cuh"

namespace attnbench::kernels::cuda {

template <class T>
MemoryArguments<T> memory_arguments(const LavoSizes& sizes, const LavoArguments<T>& given,
                                    const MemoryPlan& plan, const MemorySpace& lent) {
  MemoryArguments<T> a;
  a.query = given.query;
  a.tokens = given.tokens;
  a.bases = given.bases;
  a.out = given.out;
  a.mask = given.key_mask;
  a.mask_stride = given.mask_stride;
  a.heads = static_cast<int>(sizes.heads);
  a.count = static_cast<int>(sizes.bases);
  a.dim = static_cast<int>(sizes.head_dim);
  a.windows = sizes.order == MemoryOrder::windows;
  a.inclusive = sizes.order == MemoryOrder::each_token;
  a.whole = sizes.order == MemoryOrder::all;
  a.averaged = sizes.averaged;
  a.alone = sizes.alone && a.windows;
  a.scale = static_cast<float>(sizes.scale * 1.4426950408889634);
  a.plan = plan;
  a.sums = lent.sums;
  a.counts = lent.counts;
  return a;
}

inline dim3 memory_grid(std::int64_t heads, int segments) {
  return dim3(static_cast<unsigned>(heads), static_cast<unsigned>(segments));
}

inline std::size_t memory_block_bytes(const LavoSizes& sizes, const MemoryPlan& plan,
                                      bool gradient) {
  const MemoryLayout layout(static_cast<int>(sizes.bases), static_cast<int>(sizes.head_dim),
                            plan.tile, gradient);
  const std::size_t bytes = sizeof(float) * static_cast<std::size_t>(layout.floats);
  if (bytes > card().shared_bytes) {
    throw std::logic_error("a block of this card has too little shared memory for these bases");
  }
  return bytes;
}

/// What segments need to know of those before them.
template <class T>
void launch_memory_sums(const MemoryArguments<T>& a, std::int64_t heads, Stream stream) {
  const int segments = a.plan.summing.count - (a.whole ? 0 : 1);  // nothing is behind the last
  if (segments == 0) return;
  launch(memory_sums<T>, memory_grid(heads, segments), dim3(memory_sum_threads), 0, stream, a);
}

/// Whether rows of `width` 16-bit numbers can be moved by pieces of 16 bytes.
template <class T>
bool memory_pieces(const Rows<T>& rows, std::int64_t width) {
  const std::int64_t strides = rows.batch_stride | rows.head_stride | rows.row_stride | width;
  return strides % 8 == 0 && reinterpret_cast<std::uintptr_t>(rows.data) % 16 == 0;
}

template <class T>
void set_pieces(MemoryArguments<T>& a) {
  a.query_pieces = memory_pieces(a.query, a.dim);
  a.token_pieces = memory_pieces(a.tokens, a.dim);
  a.base_pieces = memory_pieces(a.bases, a.dim);
  a.out_pieces = memory_pieces(a.out, a.dim);
}

template <class T, int Width>
void launch_memory_tensor(MemoryArguments<T> a, std::int64_t heads, Stream stream) {
  constexpr std::size_t bytes = MemoryTensorLayout<Width>::bytes;
  if (bytes > card().shared_bytes) {
    throw std::logic_error("a block of this card has too little shared memory for these bases");
  }
  set_pieces(a);
  launch(a.inclusive ? memory_read_tensor<T, Width, true> : memory_read_tensor<T, Width, false>,
         memory_grid(heads, a.plan.reading.count), dim3(memory_threads), bytes, stream, a);
}

template <class T>
void launch_memory_read(const MemoryArguments<T>& a, const LavoSizes& sizes, std::int64_t heads,
                        Stream stream) {
  if constexpr (!std::is_same_v<T, float>) {
    if (a.plan.tensor_width == 64) return launch_memory_tensor<T, 64>(a, heads, stream);
    if (a.plan.tensor_width == 128) return launch_memory_tensor<T, 128>(a, heads, stream);
  }
  launch(memory_read<T>, memory_grid(heads, a.plan.reading.count), dim3(memory_threads),
         memory_block_bytes(sizes, a.plan, false), stream, a);
}

template <class T>
void memory_forward(const LavoSizes& sizes, const LavoArguments<T>& given, const MemoryPlan& plan,
                    Stream stream, void* workspace, std::size_t bytes) {
  Workspace space(workspace, bytes);
  const MemorySpace lent(space, sizes, plan);
  const std::int64_t heads = sizes.batch * sizes.heads;
  MemoryArguments<T> a = memory_arguments(sizes, given, plan, lent);
  const MemoryCarry<float>& carry = given.carry;
  const bool carried = carry.mean != nullptr;
  MemoryAdvance advance{lent.after, carry, 0, 0, sizes.batch};
  if (carried) {
    a.before = carry;
    a.after = lent.after;
    if (plan.reading.count == 1) {  // one block reads and writes what belongs to a head
      a.after.mean = carry.mean;
      a.after.sum = carry.sum;
    } else {
      advance.means = heads * sizes.bases;
      advance.sums = a.windows ? heads * sizes.head_dim : 0;
    }
  }
  if (carried && sizes.length == 1) {
    launch(memory_step<T>, memory_grid(heads, 1), dim3(memory_step_threads), 0, stream, a);
  } else {
    launch_memory_sums(a, heads, stream);
    launch_memory_read(a, sizes, heads, stream);
  }
  if (!carried) return;
  const std::int64_t numbers = std::max({advance.means, advance.sums, advance.batch});
  launch(memory_advance,
         dim3(static_cast<unsigned>((numbers + memory_sum_threads - 1) / memory_sum_threads)),
         dim3(memory_sum_threads), 0, stream, advance);
}

/// What queries give. In fp16 gradients of coordinates may be too small for tensor cores.
template <class T>
void launch_query_gradients(MemoryArguments<T> a, MemoryGradientArguments<T> g,
                            const LavoSizes& sizes, std::int64_t heads, Stream stream) {
  const dim3 grid = memory_grid(heads, a.plan.reading.count);
  if constexpr (std::is_same_v<T, BFloat16>) {
    constexpr std::size_t bytes = MemoryGradientLayout::bytes;
    if (memory_tensor_width(sizes) == 64 && bytes <= card().shared_bytes) {
      a.out = g.d_query;
      set_pieces(a);
      g.d_out_pieces = memory_pieces(g.d_out, a.dim);
      return launch(memory_query_gradients_tensor<T>, grid, dim3(memory_threads), bytes, stream, a,
                    g);
    }
  }
  launch(memory_query_gradients<T>, grid, dim3(memory_threads),
         memory_block_bytes(sizes, a.plan, true), stream, a, g);
}

/// What tokens get.
template <class T>
void launch_token_gradients(MemoryArguments<T> a, MemoryGradientArguments<T> g,
                            const LavoSizes& sizes, std::int64_t heads, Stream stream) {
  const dim3 grid = memory_grid(heads, a.plan.summing.count);
  if constexpr (std::is_same_v<T, BFloat16>) {
    constexpr std::size_t bytes = MemoryTokenLayout::bytes;
    if (memory_tensor_width(sizes) == 64 && bytes <= card().shared_bytes) {
      a.out = g.d_tokens;
      set_pieces(a);
      g.d_out_pieces = memory_pieces(g.d_out, a.dim);
      return launch(memory_token_gradients_tensor<T>, grid, dim3(memory_threads), bytes, stream, a,
                    g);
    }
  }
  launch(memory_token_gradients<T>, grid, dim3(memory_threads),
         memory_block_bytes(sizes, a.plan, false), stream, a, g);
}

template <class T>
void memory_backward(const LavoSizes& sizes, const LavoArguments<T>& given,
                     const LavoGradients<T>& gradients, const MemoryPlan& plan, Stream stream,
                     void* workspace, std::size_t bytes) {
  Workspace space(workspace, bytes);
  const MemorySpace lent(space, sizes, plan);
  auto g = memory_gradient_space<T>(space, sizes, plan);
  g.d_out = gradients.d_out;
  g.d_query = gradients.d_query;
  g.d_tokens = gradients.d_tokens;
  const std::int64_t heads = sizes.batch * sizes.heads;
  const MemoryArguments<T> a = memory_arguments(sizes, given, plan, lent);
  if (heads > 0) {
    launch_memory_sums(a, heads, stream);
    launch_query_gradients(a, g, sizes, heads, stream);
    launch_token_gradients(a, g, sizes, heads, stream);
  }
  const std::int64_t numbers = sizes.heads * sizes.bases * sizes.head_dim;
  launch(memory_bases_gradient<T>,
         dim3(static_cast<unsigned>((numbers + memory_add_threads - 1) / memory_add_threads)),
         dim3(memory_add_threads), 0, stream, a, g, gradients.d_bases,
         static_cast<int>(sizes.batch));
}

#define ATTNBENCH_LAVO(T)                                                                       \
  template void memory_forward<T>(const LavoSizes&, const LavoArguments<T>&, const MemoryPlan&, \
                                  Stream, void*, std::size_t);                                  \
  template void memory_backward<T>(const LavoSizes&, const LavoArguments<T>&,                   \
                                   const LavoGradients<T>&, const MemoryPlan&, Stream, void*,   \
                                   std::size_t);

}  // namespace attnbench::kernels::cuda
