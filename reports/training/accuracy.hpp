// Figures of trainings: accuracy, or bits per byte of language models, and the curves of every
// seed. A mechanism is shown at the learning rate that validation chose
// (reports/tables/selection.hpp); every seed is a dot of its own, and no interval is drawn over
// few.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// Test accuracy (or bits per byte) over the panel's axis, or side by side where nothing varies
/// along it; lines for guessing, the reach of one look-up where it was computed, and published
/// numbers apart. None over the bytes of the state, which cost.hpp draws.
std::optional<Figure> accuracy_figure(const Panel& panel, const Palette& palette,
                                      const std::vector<PublishedRow>& published);

/// Validation accuracy over learning rates, with the choice marked.
std::optional<Figure> accuracy_over_rate_figure(const Panel& panel, const Palette& palette);

/// Test accuracy over how far back the answer stands.
std::optional<Figure> look_back_figure(const Panel& panel, const Palette& palette);

/// Validation accuracy over epochs; of language models, the share of next bytes that are predicted
/// right, over steps.
std::optional<Figure> learning_curves_figure(const Panel& panel, const Palette& palette);

/// Loss over steps, logarithmic.
std::optional<Figure> loss_curves_figure(const Panel& panel, const Palette& palette);

/// Bits per byte of language models, none of others: of the validation over steps, and of the test
/// over the length of the sequences that it is cut into.
std::optional<Figure> bits_over_steps_figure(const Panel& panel, const Palette& palette);
std::optional<Figure> bits_over_length_figure(const Panel& panel, const Palette& palette);

}  // namespace attnbench::reports
