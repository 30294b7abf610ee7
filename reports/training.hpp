// Figures of trainings. What speaks for a mechanism is the learning rate that validation chose
// (harness/result/selection.hpp); every seed is a dot of its own, and no interval is drawn over
// few.
#pragma once

#include <optional>

#include "reports/figure.hpp"

namespace attnbench::reports {

/// Test accuracy over the panel's axis, or side by side where nothing varies along it; lines for
/// guessing and, where it was computed, the reach of one look-up.
std::optional<Figure> accuracy_figure(const result::Panel& panel,
                                      const std::vector<std::string>& order);

/// Test accuracy over the bytes of the state, and the front: what nothing with less state betters.
std::optional<Figure> accuracy_over_state_figure(const result::Panel& panel,
                                                 const std::vector<std::string>& order);

/// Validation accuracy over learning rates, with the choice marked: the other side of every
/// maximum.
std::optional<Figure> accuracy_over_rate_figure(const result::Panel& panel,
                                                const std::vector<std::string>& order);

/// Validation accuracy over epochs, of every seed at the chosen rate.
std::optional<Figure> learning_curves_figure(const result::Panel& panel,
                                             const std::vector<std::string>& order);

/// Loss over steps, logarithmic, of every seed at the chosen rate.
std::optional<Figure> loss_curves_figure(const result::Panel& panel,
                                         const std::vector<std::string>& order);

/// Test accuracy over how far back the answer stands.
std::optional<Figure> look_back_figure(const result::Panel& panel,
                                       const std::vector<std::string>& order);

}  // namespace attnbench::reports
