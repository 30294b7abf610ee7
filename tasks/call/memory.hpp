// The memory of one pass, counted in a run of its own.
#pragma once

#include <functional>

#include "tasks/call/settings.hpp"

namespace attnbench::tasks::call {

/// What the memory pass needs of the work.
struct MeteredPass {
  Pass pass = Pass::forward;
  std::function<at::Tensor()> forward;
  at::Tensor upstream;  ///< the output's gradient; undefined for forward alone
  std::function<void()> clear_gradients;
  std::int64_t input_bytes = 0;
};

/// {input_bytes, output_bytes, saved_bytes?, gradient_bytes?, workspace_bytes, peak_bytes}.
/// saved: what the graph keeps for the backward pass beyond inputs and output. gradient: what
/// backward leaves. workspace: the most that was in use at once beyond all of those. peak: all
/// tensors of the process at the worst moment.
Json metered(const MeteredPass& pass, MemoryMeter& meter);

}  // namespace attnbench::tasks::call
