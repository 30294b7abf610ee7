// The scope `model` of the decode task: a whole model reads a context of token ids, and continues
// from its state.
#pragma once

#include <memory>

#include "tasks/task.hpp"

namespace attnbench::tasks::decode {

/// Whether the cell has the scope `model`.
bool decodes_model(const ResolvedCell& cell);

/// The settings of the model, as the kernel task has them: layers, vocabulary, mlp, mlp_width, norm
/// and tied_head.
std::vector<Option> model_decode_settings();

/// The forecast of one token's step through the model; `mix` is that of the mix alone, over the
/// context.
TaskForecast forecast_model_decode(const Registry& registry, const ResolvedCell& cell,
                                   TaskForecast mix);

std::unique_ptr<Work> make_model_decode(const Registry& registry, const ResolvedCell& cell,
                                        const TaskForecast& forecast);

}  // namespace attnbench::tasks::decode
