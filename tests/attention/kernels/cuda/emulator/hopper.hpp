// What only Hopper has, for the emulator: mbarriers, tensor maps and bulk tensor copies (TMA), and
// warpgroup products (wgmma). From the text of the PTX ISA: "Parallel Synchronization and
// Communication Instructions: mbarrier", "Tensors", "Asynchronous Warpgroup Level Matrix
// Multiply-Accumulate Instructions". They mean the same as the wrappers of mbarrier.cuh, tma.cuh
// and wgmma.cuh in attention/kernels/cuda, whose place they take there.
//
// What is asynchronous happens at one of the two ends of the time that the program leaves it, now
// this, now that: copies at once, or only when somebody waits for them; products when their group
// is closed, or only when it is waited for. What a copy will overwrite, and accumulators on their
// way, hold NaN. So a wait left out and a buffer given back too early both change the result.
//
// A Fault says: registers of a product that were written between the fence before it and the wait
// after it; operands that do not begin on their swizzle's 1024 bytes, or whose descriptors have
// bits that mean nothing; warps of a warpgroup that order different products; barriers used before
// they were published and the threads have met; copies and products that the block does not wait
// for; registers that the block's pool never has.
#pragma once

#include <cstdint>

namespace attnbench::emulated {

/// Makes a barrier in shared memory whose phases end after so many arrivals.
void mbarrier_make(std::uint32_t barrier, int arrivals);
/// fence.mbarrier_init: for the barriers that this thread made.
void mbarrier_publish();
/// Announces bytes, then arrives.
void mbarrier_arrive(std::uint32_t barrier, int announced_bytes);
void mbarrier_wait(std::uint32_t barrier, std::uint32_t parity);

/// A tensor map of five extents of 16-bit numbers, swizzled by 128 bytes, zeros out of bounds.
struct alignas(64) TensorMap {
  const unsigned char* data;
  std::int64_t extents[5];  ///< innermost first
  std::int64_t strides[5];  ///< in bytes
  int box[5];
};
/// `strides` are those of all but the innermost. Throws Fault where cuTensorMapEncodeTiled refuses.
TensorMap encode_map(bool half, const void* data, const std::uint64_t (&extents)[5],
                     const std::uint64_t (&strides)[4], const std::uint32_t (&box)[5]);
void load_tile(const TensorMap& map, std::uint32_t to, std::uint32_t barrier,
               const int (&coordinates)[5]);

void wgmma_fence();
/// One product of 64 x 16 times 16 x `columns`, called by all threads of a warp. `a` are the
/// thread's four registers of that operand, or null: then it is in shared memory, K-major. B is in
/// shared memory, N-major where `transposed`, else K-major.
void wgmma(bool half, int columns, float* d, bool add, const std::uint32_t* a,
           std::uint64_t a_operand, std::uint64_t b_operand, bool transposed);
void wgmma_commit();
void wgmma_wait(int pending);

/// setmaxnreg.inc where `more`, else .dec, in a block that was launched with as many registers as
/// __launch_bounds__(threads, 1) leaves it.
void set_registers(int count, bool more);

}  // namespace attnbench::emulated
