// What was taken for what: a map of classes for each mechanism.
#pragma once

#include <optional>

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// The test examples of each true class by the class that they were taken for, as shares of the
/// true class, of all seeds at the chosen learning rate together; a map for each mechanism. Nothing
/// where no examples were classified.
std::optional<Figure> confusion_figure(const Panel& panel, const Palette& palette);

}  // namespace attnbench::reports
