// The mechanisms of a model's blocks: one for all, or a pattern of several that repeats, as hybrids
// of recurrences and exact attention have it.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tasks/task.hpp"

namespace attnbench::tasks {

/// The setting `stack`: "3 self + 1 softmax", where self is the cell's mechanism; empty = self
/// alone.
Option stack_setting();

/// Whether the blocks hold several mechanisms. Throws UsageError where they are said to and the
/// scope is not a model.
bool has_stack(const Options& settings);

/// The cell with another mechanism and without a stack. `word` is a name or alias, with or without
/// an implementation and options: "softmax", "softmax/chunked", "window(window=64 scale=1)". Throws
/// UsageError.
ResolvedCell with_mechanism(const Registry& registry, const ResolvedCell& cell,
                            const std::string& word);

/// The forecast of a cell whose model has `blocks` blocks with a mechanism. `alone` is that of a
/// model with one mechanism in all of them. Costs are linear in the blocks, so those of a stack are
/// the mean of its mechanisms', of memory that of trainings alone, else the greatest; an exponent
/// of growth is the greatest. Unsupported where one of them is. Throws UsageError for a stack
/// without self, and for one whose length does not divide `blocks`.
TaskForecast forecast_stack(const Registry& registry, const ResolvedCell& cell, std::int64_t blocks,
                            const std::function<TaskForecast(const ResolvedCell&)>& alone);

/// Cell and forecast of the mechanism in block `index`, counted among those that hold one. Refers
/// to the arguments.
struct BlockMechanism {
  const ResolvedCell& cell;
  const TaskForecast& forecast;
};
BlockMechanism mechanism_of(const ResolvedCell& cell, const TaskForecast& forecast,
                            std::size_t index);

/// The blocks whose mixes stand for those of all `blocks`: the first with each mechanism, and the
/// last.
std::vector<std::size_t> blocks_to_check(const TaskForecast& forecast, std::size_t blocks);

/// What a block mixes by.
struct Mixer {
  std::shared_ptr<Mechanism> mechanism;
  Implementation implementation;
};
/// Makes that of block `index`, counted as above.
using MakeMixer = std::function<Mixer(std::size_t index)>;
/// For the problem of `forecast`. Refers to the arguments.
MakeMixer mixers(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast);

}  // namespace attnbench::tasks
