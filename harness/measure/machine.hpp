// The machine card: what cells are measured on.
#pragma once

#include "core/result/machine.hpp"

namespace attnbench::measure {

struct Neighbours;

/// What the supervisor knows. The torch part (version, threads, allocator, blas: see
/// harness/program/run/plan/blas_core.hpp) is the worker's.
result::MachineCard machine_card();

/// Replaces the busy processes in the card's `load` and its sources of noise. Other sources stay.
void note_neighbours(result::MachineCard& card, const Neighbours& now);

}  // namespace attnbench::measure
