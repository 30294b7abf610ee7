// Outcome: what the record of a cell says of a training.
#pragma once

#include "tasks/training/trainer.hpp"

namespace attnbench::tasks::learning {

/// The sections `metrics` and `training` of core/result/record.hpp, of a model that `trainer`
/// has trained: every segment of the test is scored, `together` examples at once. State is counted
/// after `longest` tokens.
Json outcome(Model& model, const DataSet& data, const Trainer& trainer, std::int64_t together,
             std::int64_t longest);

}  // namespace attnbench::tasks::learning
