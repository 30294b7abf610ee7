// What the record of a cell holds of a training.
#pragma once

#include <cstdint>

#include "tasks/sections.hpp"
#include "tasks/training/trainer.hpp"

namespace attnbench::tasks::training {

/// The sections `metrics` and `training` of core/result/record.hpp, of a model that
/// `trainer` has trained. Scores every test segment, `together` examples in one batch, by the
/// weights that the trainer keeps, which the model has afterwards; counts the state after `longest`
/// tokens.
RunSections training_record(Model& model, const DataSet& data, Trainer& trainer,
                            std::int64_t together, std::int64_t longest);

}  // namespace attnbench::tasks::training
