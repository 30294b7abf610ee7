// Packing tokens into slots and reading them, without an order, by the tiled softmax: as many
// queries as slots against all tokens, then all tokens against the slots.
#pragma once

#include "attention/algorithms/slots/cost.hpp"
#include "attention/algorithms/softmax/forms.hpp"

namespace attnbench::slot_memory {

/// Whether the kernel does both.
Support tiles_support(const Sizes& sizes);
/// A Perceiver packs keys and values at once, or one after the other with the same weights computed
/// twice (softmax_pool.hpp).
Cost tiles_cost(const Sizes& sizes);

}  // namespace attnbench::slot_memory
