// Words among the marks of a figure of trainings: who stands on the front, and what the line of one
// look-up into a window is.
#pragma once

#include "reports/training/frame.hpp"

namespace attnbench::reports {

/// A layer with the name of each series at its points of the front, one name for neighbours of one
/// series, and with the words beside the line of what is predicted: near a third, towards the
/// middle. Each lies over as few of the sketch's marks, of other words and of `layers` (levels over
/// the whole width) as can be, in a wide picture and, at a place of its own, in one as narrow as a
/// phone. `y` is the encoding of the other axis. Null without any words.
Json label_layer(const Sketch& sketch, const Json& layers, const Json& y);

}  // namespace attnbench::reports
