// Watching what threads read and write, for the emulator. Sources that are compiled with the flags
// of CMakeLists.txt (attnbench_watched) call this at every access to memory, as they would call the
// runtime of a sanitizer; the emulated copy instructions report their own accesses here.
//
// A race is found whatever the order in which the emulator happens to run threads: two accesses of
// two threads to the same bytes, one of them a write, that no barrier orders. Threads of a block
// are ordered by __syncthreads, lanes of a warp by __syncwarp; a read is also done before what
// follows the warp's next shuffle or product. Blocks of one launch are not ordered at all. Beside
// that: accesses past the ends of device memory and of shared memory, to what an asynchronous copy
// is still bringing, at addresses that are not aligned for their type, and by the host to what is
// the device's. Kernels that use mbarriers or numbered barriers are not watched for races in a
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace attnbench::emulated {

/// Whether accesses are watched; the flags alone do not.
bool watching();
/// Switches it for tests of the watch itself.
void watch(bool on);

/// An access of the thread that runs. Faults are not thrown here, where no one can catch them, but
/// when the thread next rests.
void note(const void* at, std::size_t bytes, bool write);
/// An asynchronous copy into shared memory begins, and has come.
void note_copy(const void* to, std::size_t bytes, bool begins);

/// What threads.cpp tells of order: a launch, a block and its shared memory, a barrier of the
/// block.
void launch_begins();
void block_begins(const void* shared, std::size_t bytes);
void block_synchronised();
/// A sync of a warp; `memory`: it orders all accesses, else reads before what follows.
void warp_met(int warp, bool memory);
/// The block has barriers that the watch does not follow.
void order_unknown();

/// What emulated_device.cpp tells of device memory.
void allocated(const void* begin, std::size_t bytes);
void released(const void* begin);
/// Takes the fault of the host's accesses, if there was any.
std::string host_fault();
/// How far around an allocation nothing else lies.
constexpr std::size_t around_allocations = 4096;

}  // namespace attnbench::emulated
