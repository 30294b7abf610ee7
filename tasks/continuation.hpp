// Continuing from a state: reading tokens into one, resetting it, and what the tokens after it
// cost. The task `decode` continues by single tokens, the task `kernel` by a chunk.
#pragma once

#include <cstdint>
#include <utility>

#include "attention/mechanism.hpp"
#include "core/claims.hpp"

namespace attnbench::tasks {

/// A state that can be reset, always at the same addresses: a recorded step reads it there, even
/// where a mechanism replaces the tensors of its state.
class ResettableState {
 public:
  explicit ResettableState(State saved)
      : saved_(std::move(saved)), home_(saved_.clone()), state_(home_) {}

  void reset() {
    for (const auto& [name, tensor] : saved_.tensors) home_.tensors.at(name).copy_(tensor);
    state_ = home_;
  }
  State& state() { return state_; }
  /// The bytes of what it is reset to.
  std::int64_t bytes() const { return saved_.bytes(); }

 private:
  const State saved_;
  const State home_;
  State state_;  ///< the one that calls advance
};

/// Whether the mechanism has a state; makes one with room for one token, which costs nothing.
Support has_state(const Mechanism& mechanism, const Problem& problem);

/// `count` tokens from token `begin` on, of every role that has tokens and of the mask, without a
/// copy. A latent stream stays whole: a state keeps it.
Inputs token_slice(const Mechanism& mechanism, const Inputs& inputs, std::int64_t begin,
                   std::int64_t count);

/// The state after the first `past` tokens of `inputs`, with room for all of them. Reads pieces of
/// `piece` tokens, or of least_piece where that is more, as servers do: a form with a whole matrix
/// of scores then needs no more memory than for the call that continues. Records no gradients.
State state_after(const Implementation& implementation, Mechanism& mechanism, const Inputs& inputs,
                  std::int64_t past, std::int64_t piece);
constexpr std::int64_t least_piece = 128;

/// The same problem with `tokens` further tokens.
Problem longer_by(Problem problem, std::int64_t tokens);

/// The cost of `tokens` further tokens after those of `past`: that of the longer sequence, less
/// that of the past. They must read the state and themselves, and be written; `state_bytes` is that
/// of the past. executed_flops are model_flops, as of a recurrence. No workspace is known, and
/// nothing is saved.
Cost continued_cost(const Implementation& implementation, const Options& options,
                    const Problem& past, std::int64_t tokens);

/// The same of tokens that are computed as one block: executed_flops and workspace_bytes are the
/// block's share of the rows of a whole sequence, whose past is no longer than the state needs to
/// be full; exponentials follow executed_flops.
Cost block_cost(const Implementation& implementation, const Options& options, const Problem& past,
                std::int64_t tokens);

}  // namespace attnbench::tasks
