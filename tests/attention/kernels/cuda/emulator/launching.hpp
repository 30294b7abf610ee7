// How launch.cuh launches under the emulator: at once, or into the graph that is being recorded.
#pragma once

#include <functional>

#include "tests/attention/kernels/cuda/emulator/threads.hpp"

namespace attnbench::emulated {

/// Throws kernels::cuda::Error where the launch is refused or the kernel is at fault.
void launch(Index grid, Index block, std::size_t shared_bytes, std::function<void()> kernel);

}  // namespace attnbench::emulated
