// Hopper's bulk tensor copies (TMA) of [batch, heads, length, width] arrays of 16-bit numbers.
//
// A tile of rows lies in shared memory as panels of 64 columns: panel after panel, in each 128
// bytes a row, swizzled by 128 bytes, as the tensor cores read it (wgmma.cuh). The width is cut in
// panels by the tensor map (64, length, width / 64, heads, batch), so that one copy brings a tile.
// Rows past the end of the array arrive as zeros.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <type_traits>

#ifndef ATTNBENCH_EMULATED
#include <cuda.h>
#endif

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda::sm90 {

#ifdef ATTNBENCH_EMULATED
using emulated::TensorMap;
#else
using TensorMap = CUtensorMap;
#endif

/// What one tensor map can span: why not, or nothing.
template <class T>
std::string tensor_refusal(const char* name, const Rows<T>& x, std::int64_t batch,
                           std::int64_t heads, std::int64_t length) {
  static_assert(sizeof(T) == 2);
  if (reinterpret_cast<std::uintptr_t>(x.data) % 16 != 0) {
    return std::string(name) + " is not aligned to 16 bytes";
  }
  const auto fits = [](std::int64_t count, std::int64_t stride) {
    return count <= 1 || (stride > 0 && stride % 8 == 0 && stride < (std::int64_t{1} << 39));
  };
  if (!fits(batch, x.batch_stride) || !fits(heads, x.head_stride) || !fits(length, x.row_stride)) {
    return std::string(name) + " has strides that are not positive multiples of 16 bytes";
  }
  return {};
}

/// Encodes a map of five extents, innermost first; strides in bytes, of all but the innermost.
#ifdef ATTNBENCH_EMULATED
using emulated::encode_map;
#else
inline TensorMap encode_map(bool half, const void* data, const std::uint64_t (&extents)[5],
                            const std::uint64_t (&strides)[4], const std::uint32_t (&box)[5]) {
  // The driver's own function, so that nothing links against the driver's library.
  static const auto encode = [] {
    void* entry = nullptr;
    cudaDriverEntryPointQueryResult found{};
#if CUDART_VERSION >= 12050
    check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &entry, 12000,
                                           cudaEnableDefault, &found),
          "cudaGetDriverEntryPointByVersion");
#else
    check(cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &entry, cudaEnableDefault, &found),
          "cudaGetDriverEntryPoint");
#endif
    if (found != cudaDriverEntryPointSuccess || entry == nullptr) {
      throw Error("the driver has no cuTensorMapEncodeTiled");
    }
    return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(entry);
  }();
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  cuuint64_t extent[5], stride[4];
  std::copy_n(extents, 5, extent);
  std::copy_n(strides, 4, stride);
  TensorMap map{};
  const auto attempt = [&] {
    return encode(&map, half ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                  5, const_cast<void*>(data), extent, stride, box, steps,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  CUresult result = attempt();
  if (result == CUDA_ERROR_INVALID_CONTEXT) {
    // The runtime's calls give a thread its context, the driver's do not: this thread is new.
    int device = 0;
    check(cudaGetDevice(&device), "cudaGetDevice");
    check(cudaSetDevice(device), "cudaSetDevice");
    result = attempt();
  }
  if (result != CUDA_SUCCESS) {
    throw Error("cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(result)));
  }
  return map;
}
#endif

/// The map by which tiles of `tile_rows` (at most 256) rows and the whole width (a multiple of 64)
/// are read. Where tensor_refusal has nothing to say, and lengths are below 2^31.
template <class T>
TensorMap tensor_map(const Rows<const T>& x, std::int64_t batch, std::int64_t heads,
                     std::int64_t length, int width, int tile_rows) {
  const auto unsigned_of = [](auto n) { return static_cast<std::uint64_t>(n); };
  const auto bytes = [&](std::int64_t count, std::int64_t elements) {
    // An extent of one has no stride, whatever the caller says.
    return unsigned_of(count <= 1 ? 16 : 2 * elements);
  };
  const std::uint32_t panels = static_cast<std::uint32_t>(width) / 64;
  return encode_map(
      std::is_same_v<T, Half>, x.data,
      {64, unsigned_of(length), panels, unsigned_of(heads), unsigned_of(batch)},
      {bytes(length, x.row_stride), 128, bytes(heads, x.head_stride), bytes(batch, x.batch_stride)},
      {64, static_cast<std::uint32_t>(tile_rows), panels, 1, 1});
}

__device__ __forceinline__ void prefetch_map([[maybe_unused]] const TensorMap& map) {
#ifndef ATTNBENCH_EMULATED
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
#endif
}

/// Brings the tile that begins at `row` to shared memory at `to` (aligned to 1024 bytes); its bytes
/// count towards `barrier`. One thread calls it.
__device__ __forceinline__ void load_tile(const TensorMap& map, std::uint32_t to,
                                          std::uint32_t barrier, int row, int head, int batch) {
#ifdef ATTNBENCH_EMULATED
  emulated::load_tile(map, to, barrier, {0, row, 0, head, batch});
#else
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(batch)
      : "memory");
#endif
}

}  // namespace attnbench::kernels::cuda::sm90
