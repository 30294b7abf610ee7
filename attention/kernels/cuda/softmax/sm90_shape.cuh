// The sizes that a kernel of the Hopper softmax is made for, what it is given, and how its shared
// memory is laid out.
#pragma once

#include "attention/kernels/cuda/mma_sm80.cuh"
#include "attention/kernels/cuda/softmax/sm90_tiles.hpp"
#include "attention/kernels/cuda/tma.cuh"

namespace attnbench::kernels::cuda::sm90 {

/// Sizes of one kernel. `kKeys` is how many keys (or values) a buffer of the ring holds.
template <class T, int kWidth, int kConsumers, int kKeys, int kBuffers, bool kTurns>
struct SoftmaxShape {
  using Number = T;
  static constexpr int width = kWidth;
  static constexpr int consumers = kConsumers;
  static constexpr int queries = 64 * kConsumers;
  static constexpr int keys = kKeys;
  static constexpr int buffers = kBuffers;
  static constexpr bool turns = kTurns;

  static constexpr int threads = 128 * (kConsumers + 1);
  static constexpr int producer_registers = kConsumers == 2 ? 24 : 32;
  static constexpr int consumer_registers = kConsumers == 2 ? 240 : 160;
  static constexpr int query_panel = queries * 128;  // bytes of 64 columns
  static constexpr int key_panel = keys * 128;
  static constexpr int query_bytes = queries * width * 2;
  static constexpr int key_bytes = keys * width * 2;
  static constexpr int barrier_bytes = 8 * (2 + 2 * buffers);
  /// With what aligning to 1024 bytes may cost.
  static constexpr int shared_bytes = 1024 + query_bytes + buffers * key_bytes + barrier_bytes;
};

template <class T>
struct SoftmaxParameters {
  TensorMap q, k, v;
  Rows<T> out;
  float* lse;
  float scale;  ///< with the logarithm of e to base 2
  int group;    ///< query heads for a key head
  SoftmaxTiles tiles;
};

/// Shared memory of a block, as addresses.
template <class Shape>
struct SoftmaxShared {
  std::uint32_t queries, ring, barriers;
  __device__ explicit SoftmaxShared(const void* memory)
      : queries((shared_address(memory) + 1023) & ~1023u),
        ring(queries + Shape::query_bytes),
        barriers(ring + Shape::buffers * Shape::key_bytes) {}
  __device__ std::uint32_t queries_full() const { return barriers; }
  __device__ std::uint32_t queries_free() const { return barriers + 8; }
  __device__ std::uint32_t full(int buffer) const { return barriers + 16 + 8 * buffer; }
  __device__ std::uint32_t free(int buffer) const { return full(buffer) + 8 * Shape::buffers; }
  __device__ std::uint32_t buffer(int buffer) const { return ring + buffer * Shape::key_bytes; }
};

}  // namespace attnbench::kernels::cuda::sm90
