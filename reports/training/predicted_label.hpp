// The words beside the line of what one look-up into a window reaches.
#pragma once

#include "reports/training/frame.hpp"

namespace attnbench::reports {

/// A layer with the words: near a third, towards the middle, where they lie over as few of the
/// sketch's marks and of `layers` (levels over the whole width) as can be. `y` is the encoding of
/// the other axis. Null without rows of kind "predicted".
Json predicted_label(const Sketch& sketch, const Json& layers, const Json& y);

}  // namespace attnbench::reports
