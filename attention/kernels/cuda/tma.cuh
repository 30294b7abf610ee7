// Hopper's bulk tensor copies (TMA) of [batch, heads, length, width] arrays of 16-bit numbers.
//
// A tile of rows lies in shared memory as panels of 64 columns: panel after panel, in each 128 bytes
// a row, swizzled by 128 bytes, as the tensor cores read it (wgmma.cuh). The width is cut in panels
// by the tensor map (64, length, width / 64, heads, batch), so that one copy brings a tile. Rows past
// the end of the array arrive as zeros.
#pragma once

#include <cuda.h>

#include <cstdint>
#include <string>
#include <type_traits>

#include "attention/kernels/cuda/launch.cuh"
#include "attention/kernels/rows.hpp"

namespace attnbench::kernels::cuda::sm90 {

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

/// The driver's own function, so that nothing links against the driver's library.
inline decltype(&cuTensorMapEncodeTiled) tensor_map_encoder() {
  static const auto encoder = [] {
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
  return encoder;
}

/// The map by which tiles of `tile_rows` (at most 256) rows and the whole width (a multiple of 64)
/// are read. Where tensor_refusal has nothing to say, and lengths are below 2^31.
template <class T>
CUtensorMap tensor_map(const Rows<const T>& x, std::int64_t batch, std::int64_t heads,
                       std::int64_t length, int width, int tile_rows) {
  const auto stride = [](std::int64_t count, std::int64_t elements) {
    // An extent of one has no stride, whatever the caller says.
    return static_cast<cuuint64_t>(count <= 1 ? 16 : 2 * elements);
  };
  const cuuint64_t extents[5] = {64, static_cast<cuuint64_t>(length),
                                 static_cast<cuuint64_t>(width / 64),
                                 static_cast<cuuint64_t>(heads), static_cast<cuuint64_t>(batch)};
  const cuuint64_t strides[4] = {stride(length, x.row_stride), 128, stride(heads, x.head_stride),
                                 stride(batch, x.batch_stride)};
  const cuuint32_t box[5] = {64, static_cast<cuuint32_t>(tile_rows),
                             static_cast<cuuint32_t>(width / 64), 1, 1};
  const cuuint32_t steps[5] = {1, 1, 1, 1, 1};
  CUtensorMap map{};
  const CUresult result = tensor_map_encoder()(
      &map,
      std::is_same_v<T, Half> ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16 : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
      5, const_cast<T*>(x.data), extents, strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE,
      CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
      CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  if (result != CUDA_SUCCESS) {
    throw Error("cuTensorMapEncodeTiled: error " + std::to_string(static_cast<int>(result)));
  }
  return map;
}

__device__ __forceinline__ void prefetch_map(const CUtensorMap& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

/// Brings the tile that begins at `row` to shared memory at `to` (aligned to 1024 bytes); its bytes
/// count towards `barrier`. One thread calls it.
__device__ __forceinline__ void load_tile(const CUtensorMap& map, std::uint32_t to,
                                          std::uint32_t barrier, int row, int head, int batch) {
  asm volatile(
      "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4, %3, %5, %6}], [%2];" ::"r"(to),
      "l"(&map), "r"(barrier), "r"(0), "r"(row), "r"(head), "r"(batch)
      : "memory");
}

}  // namespace attnbench::kernels::cuda::sm90
