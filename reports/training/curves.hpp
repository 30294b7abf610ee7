// Curves of trainings: every seed at the chosen learning rate, epoch by epoch.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// Validation accuracy over epochs.
std::optional<Figure> learning_curves_figure(const result::Panel& panel,
                                             const std::vector<std::string>& order);

/// Loss over steps, logarithmic.
std::optional<Figure> loss_curves_figure(const result::Panel& panel,
                                         const std::vector<std::string>& order);

}  // namespace attnbench::reports
