// Accuracy over the bytes of the state: what a byte recalls, whatever the mechanism and its width.
#pragma once

#include "reports/figures/figure.hpp"

namespace attnbench::reports {

/// One figure for each data set that the panels' trainings learned from: widths and numbers of
/// heads stand side by side in it. Every seed at the chosen learning rate; the front, which nothing
/// with as little state betters; the reach of windows of all sizes, foretold; published numbers
/// apart.
std::vector<Figure> accuracy_over_state_figures(const std::vector<const result::Panel*>& panels,
                                                const std::vector<std::string>& order,
                                                const std::vector<PublishedRow>& published);

}  // namespace attnbench::reports
