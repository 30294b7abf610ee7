// How launch.cuh launches under the emulator: at once, or into the graph that is being recorded.
#pragma once

#include <cstddef>
#include <functional>

#include "tests/attention/kernels/cuda/emulator/threads.hpp"

namespace attnbench::emulated {

/// Throws kernels::cuda::Error where the launch is refused or the kernel is at fault.
void launch(Index grid, Index block, std::size_t shared_bytes, std::function<void()> kernel);

/// While it lives, blocks have the 99 KiB of shared memory of capability 8.6, 8.9 and 12.0.
class SmallCard {
 public:
  SmallCard();
  ~SmallCard();
  SmallCard(const SmallCard&) = delete;
  SmallCard& operator=(const SmallCard&) = delete;

 private:
  std::size_t before_;
};

}  // namespace attnbench::emulated
