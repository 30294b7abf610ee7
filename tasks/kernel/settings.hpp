// The kernel task's settings, read.
#pragma once

#include "attention/layer.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::kernel {

/// Which passes are inside the clock.
enum class Pass { forward, backward, forward_backward };

const char* to_string(Pass pass);

/// What a cell's settings say.
struct Settings {
  Problem problem;  ///< `gradient` is set where the pass has a backward
  Pass pass = Pass::forward;
  Scope scope = Scope::mix;
  double input_scale = 1;

  bool has_backward() const { return pass != Pass::forward; }
};

/// The declaration of them all.
std::vector<Option> declared_settings();

/// Throws UsageError where sizes contradict each other.
Settings settings_from(const Cell& cell);

}  // namespace attnbench::tasks::kernel
