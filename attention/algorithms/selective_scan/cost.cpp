// What the forms of the selective scan cost; their memory was counted.
#include <algorithm>
#include <cmath>

#include "attention/algorithms/selective_scan/selective_scan.hpp"

namespace attnbench::selective_scan {
namespace {

/// The same for all forms, whatever is in memory at once.
Cost common_cost(const Sizes& n) {
  const double tokens = n.channels * n.length;  // of each channel
  const double numbers = tokens * n.rows;       // of each token's state
  Cost cost;
  // The decay, what is written (2) and the sum that is read (2); the skip. A complex product is 6.
  cost.model_flops = numbers * (n.complex ? 11 : 5) + tokens * 2;
  cost.exponentials = n.channels * n.rows / n.batch;
  cost.minimal_bytes = tokens * 2 * n.bytes;
  if (n.selective) {
    // The exponent; a step's bias and logarithm, and its product with the value.
    cost.model_flops += numbers + tokens * (3 + 2 * n.rank);
    cost.exponentials = numbers + tokens * 2;
    cost.minimal_bytes += n.groups * n.length * 2 * n.rows * n.bytes;
    cost.minimal_bytes += (n.rank > 0 ? n.groups * n.length * n.rank : tokens) * n.bytes;
  }
  cost.executed_flops = cost.model_flops;
  cost.state_bytes = n.state_bytes();
  return cost;
}

/// Bytes of the parameters as they are computed with.
double weight_bytes(const Sizes& n) { return (n.selective ? 2 : 3) * n.state_bytes() / n.batch; }

/// Bytes of what `tokens` tokens have beside their states, and of the parameters: x, what is
/// written of it, the step and its parts, inputs and reads, the output before and after it is
/// turned.
double small_bytes(const Sizes& n, double tokens) {
  const double said = n.selective ? n.channels * 4 + n.groups * 2 * n.rows : 0;
  return n.wide() * tokens * (n.channels * 2 + said) + weight_bytes(n);
}

}  // namespace

Cost materialised_cost(const Sizes& n) {
  Cost cost = common_cost(n);
  // Decays, what is written, and the states, which are made one by one and then put side by side.
  const double states = n.state_bytes() * n.length, rest = small_bytes(n, n.length);
  cost.workspace_bytes = (n.selective ? 4 : 3) * states + rest;
  // Constants are multiplied with the states before a token alone.
  cost.saved_bytes = (n.selective ? 3 : 1) * states + rest;
  return cost;
}

Cost chunked_cost(const Sizes& n, double chunk) {
  chunk = std::min(chunk, n.length);
  Cost cost = common_cost(n);
  const double states = ((n.selective ? 2 : 1) * chunk + 2) * n.state_bytes();
  cost.workspace_bytes = states + small_bytes(n, chunk);
  // The state before each chunk.
  cost.saved_bytes = std::ceil(n.length / chunk) * n.state_bytes() + weight_bytes(n);
  cost.backward_flops = 3.5;  // a chunk is computed again
  return cost;
}

Cost fused_cost(const Sizes& n) {
  Cost cost = common_cost(n);
  // The step before and after softplus; of narrow inputs x, inputs and reads as they are computed
  // with. Then what is read of the states, and the output before it is narrowed.
  const bool narrow = n.bytes < 4;
  const double held = narrow ? n.channels * 3 + n.groups * 2 * n.rows : n.channels * 2;
  cost.saved_bytes = n.wide() * n.length * held + weight_bytes(n);
  cost.workspace_bytes = cost.saved_bytes + n.wide() * n.length * n.channels * (narrow ? 2 : 1);
  cost.backward_flops = 3;
  return cost;
}

}  // namespace attnbench::selective_scan
