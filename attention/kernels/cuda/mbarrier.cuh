// Barriers of Hopper for .cu files: mbarriers in shared memory, by which copies and warps tell each
// other that a buffer is full or free, and the named barriers of a block.
//
// PTX ISA, "Asynchronous barrier: mbarrier". A barrier goes through phases; a phase ends when as
// many arrivals as it was made for and all bytes announced have come. Who waits names the parity of
// the phase: 0 for the first, then 1, 0, … A wait for the parity before the present phase's returns
// at once, so that waiting for parity 1 on a fresh barrier is waiting for nothing.
#pragma once

#include <cstdint>

namespace attnbench::kernels::cuda::sm90 {

/// One thread makes the barriers of a block, then calls publish_barriers, then all synchronise.
__device__ __forceinline__ void make_barrier(std::uint32_t barrier, int arrivals) {
#ifdef ATTNBENCH_EMULATED
  emulated::mbarrier_make(barrier, arrivals);
#else
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
#endif
}

/// Makes new barriers known to the copy engine.
__device__ __forceinline__ void publish_barriers() {
#ifdef ATTNBENCH_EMULATED
  emulated::mbarrier_publish();
#else
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

__device__ __forceinline__ void arrive(std::uint32_t barrier) {
#ifdef ATTNBENCH_EMULATED
  emulated::mbarrier_arrive(barrier, 0);
#else
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
#endif
}

/// Arrives and announces bytes that copies will bring: the whole box, also where part of it lies
/// outside of the array.
__device__ __forceinline__ void arrive_expecting(std::uint32_t barrier, int bytes) {
#ifdef ATTNBENCH_EMULATED
  emulated::mbarrier_arrive(barrier, bytes);
#else
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes)
               : "memory");
#endif
}

__device__ __forceinline__ void wait(std::uint32_t barrier, std::uint32_t parity) {
#ifdef ATTNBENCH_EMULATED
  emulated::mbarrier_wait(barrier, parity);
#else
  std::uint32_t over = 0;
  while (over == 0) {
    // The hardware suspends the thread for a while before it says no.
    asm volatile(
        "{\n"
        ".reg .pred p;\n"
        "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
        "selp.u32 %0, 1, 0, p;\n"
        "}\n"
        : "=r"(over)
        : "r"(barrier), "r"(parity)
        : "memory");
  }
#endif
}

/// A position in a ring of buffers, and the parity of this round through them.
template <int kBuffers>
struct RingPosition {
  int buffer = 0;
  std::uint32_t parity = 0;
  __device__ __forceinline__ void advance() {
    if (++buffer == kBuffers) {
      buffer = 0;
      parity ^= 1;
    }
  }
};

/// Named barriers 1 to 15 (0 is __syncthreads): `threads` counts those that wait and those that
/// only arrive, whole warps.
__device__ __forceinline__ void named_wait(int barrier, int threads) {
#ifdef ATTNBENCH_EMULATED
  emulated::named_barrier(barrier, threads, true);
#else
  asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}
__device__ __forceinline__ void named_arrive(int barrier, int threads) {
#ifdef ATTNBENCH_EMULATED
  emulated::named_barrier(barrier, threads, false);
#else
  asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
#endif
}

}  // namespace attnbench::kernels::cuda::sm90
