// One timed call: the settings that say what is inside the clock, read.
#pragma once

#include <optional>

#include "attention/layer.hpp"
#include "tasks/training/model.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::call {

/// Which passes are inside the clock.
enum class Pass { forward, backward, forward_backward };

const char* to_string(Pass pass);

/// What a cell's settings say.
struct Settings {
  Problem problem;  ///< `gradient` is set where the pass has a backward
  Pass pass = Pass::forward;
  Scope scope = Scope::mix;                     ///< of the attention; `layer` inside of a model
  std::optional<learning::ModelOptions> model;  ///< what scope `model` puts around it
  double input_scale = 1;

  bool has_backward() const { return pass != Pass::forward; }
};

/// The declaration of them all: sizes, length, key_length and declared_kinds().
std::vector<Option> declared_settings();
/// Those of them that say what is timed, whatever the length: pattern, pass, scope, and what scope
/// `model` alone reads.
std::vector<Option> declared_kinds();

/// From settings that hold `length` and those above. Throws UsageError where sizes contradict each
/// other.
Settings settings_from(const Options& settings);

}  // namespace attnbench::tasks::call
