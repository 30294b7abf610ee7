// A CUDA device on the CPU, for tests: every thread of a block is a fiber, all on one thread of the
// system, so that the very sources of the kernels run without a GPU. This is the part that knows of
// grids, blocks, warps, shared memory and barriers; what a thread runs is device_code.hpp's.
//
// It is stricter than a card where a card forgives: shared memory begins as NaN, what is copied
// asynchronously comes as late as the program permits, and what it will overwrite is NaN from the
// beginning; all lanes of a warp must take part in what is a warp's, threads run now
// in one order, now in the other, and a deadlock is an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

namespace attnbench::emulated {

/// A kernel did what no card permits; the message says which thread and what.
class Fault : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

struct Index {
  unsigned x = 0, y = 0, z = 0;
};

/// A copy that a thread has begun.
struct Copy {
  void* to = nullptr;
  const void* from = nullptr;
  int bytes = 0;  ///< from there; what is missing to 16 becomes 0
};

/// What a kernel knows as threadIdx and so on, and what the emulator keeps of a thread.
struct Thread {
  Index thread, block, block_size, grid_size;
  int number = 0;  ///< in its block
  int lane() const { return number % 32; }
  int warp() const { return number / 32; }
  std::vector<Copy> open;                 ///< not yet committed
  std::vector<std::vector<Copy>> groups;  ///< committed, oldest first
};

/// The thread that runs now. Only inside of `run`.
Thread& self();

/// Runs `kernel` for every thread of every block, one block after the other. Throws Fault.
void run(Index grid, Index block, std::size_t shared_bytes, const std::function<void()>& kernel);

/// Lets others run until `ready` says so. Something must happen meanwhile, or it is a deadlock:
/// `why` is what is waited for.
void wait_until(const std::function<bool()>& ready, const char* why);

/// All living threads of the block; returns how many of them said `vote`.
int block_barrier(bool vote = false);

/// What the lanes of a warp do together. Each hands over its operands; the last to come does it for
/// all: `together` gets the operands of each lane (as many as the warp has). `kind` must be the
/// same for all.
void warp_together(const char* kind, void* operands,
                   const std::function<void(const std::vector<void*>&)>& together);

/// The block's dynamic shared memory, aligned to 1024 bytes, and its addresses of 32 bits.
unsigned char* shared_memory();
std::uint32_t shared_address(const void* pointer);
/// Throws Fault unless `bytes` from there on are shared memory, aligned to `alignment`.
unsigned char* shared_pointer(std::uint32_t address, std::size_t bytes, std::size_t alignment);

}  // namespace attnbench::emulated
