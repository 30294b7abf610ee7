// The recurrence as papers write it, token by token with the memory in memory, in vectors: what the
// recurrent kernels are measured against.
#pragma once

#include "attention/kernels/prefix_pool.hpp"

namespace attnbench::bench {

/// Causal Latte with running maxima, Dolga et al. 2024, equations 20 and 21: query logits, no mask,
/// no carry. `room` holds latents * (value_dim + 5) numbers for each worker; sizes are whole
/// vectors.
void token_scan(const kernels::PrefixPoolSizes& sizes,
                const kernels::PrefixPoolArguments<float>& arguments, kernels::ThreadTeam& team,
                float* room);

/// x = x * 0.5 + 1 of `count` numbers, shared out among the team: what reading and writing a memory
/// of that size costs.
void stream(float* x, std::int64_t count, kernels::ThreadTeam& team);

/// The sum of `count` numbers, one for each of the team's threads: what reading alone costs.
void read(const float* x, std::int64_t count, kernels::ThreadTeam& team, float* sums);

}  // namespace attnbench::bench
