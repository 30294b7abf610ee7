// Settings of one timed call: what is inside the clock.
#pragma once

#include <optional>

#include "attention/layer.hpp"
#include "tasks/task.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::call {

/// Which passes are inside the clock.
enum class Pass { forward, backward, forward_backward };

const char* to_string(Pass pass);

struct Settings {
  Problem problem;  ///< `gradient` is set where the pass has a backward
  Pass pass = Pass::forward;
  Scope scope = Scope::mix;                     ///< of the attention; `layer` inside a model
  std::optional<training::ModelOptions> model;  ///< of the scope `model`
  double input_scale = 1;

  bool has_backward() const { return pass != Pass::forward; }
};

/// All settings: sizes, length, key_length and declared_kinds().
std::vector<Option> declared_settings();
/// Those that do not depend on the length: pattern, pass, scope, and those of the scope `model`.
std::vector<Option> declared_kinds();

/// Reads `length` and those above. Throws UsageError where sizes contradict each
/// other.
Settings settings_from(const Options& settings);

}  // namespace attnbench::tasks::call
