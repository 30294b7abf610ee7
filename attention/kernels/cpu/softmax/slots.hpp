// The tiled softmax where one side is so short that a mechanism calls it slots: its rows are the
// latents of the whole pool, the tokens of the other side come in blocks, and no query is
// transposed.
#pragma once

#include "attention/kernels/cpu/softmax/items.hpp"

namespace attnbench::kernels {

/// Whether either side is: up to `most_slots` queries that are not few, or as many keys. All
/// queries must see all keys, and nothing is added to scores.
constexpr std::int64_t most_slots = 256;
bool slots_take(const SoftmaxSizes& sizes);

/// Call this only where `slots_take`.
template <class T>
ForwardEngine<T> softmax_forward_slots(const SoftmaxSizes& sizes);

}  // namespace attnbench::kernels
