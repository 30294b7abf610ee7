// BenchmarkTarget: what the timed call runs: a mix alone, an attention layer or a whole model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tasks/call/settings.hpp"
#include "tasks/fresh_inputs.hpp"

namespace attnbench::tasks::call {

/// One mix inside a target, with its inputs there.
struct InnerMix {
  Mechanism& mechanism;
  Inputs inputs;          ///< of all tokens, those of the past included
  std::size_t block = 0;  ///< of a model
  std::int64_t past = 0;  ///< tokens before those that it mixes
};

class BenchmarkTarget {
 public:
  virtual ~BenchmarkTarget() = default;
  /// The timed body.
  virtual at::Tensor forward() = 0;
  /// Returns to where the timed body begins. Precedes each call of it, unclocked.
  virtual void rewind() {}
  /// Every tensor that the pass reads and that gets a gradient in a backward pass.
  virtual std::vector<at::Tensor> leaves() const = 0;
  virtual std::vector<std::int64_t> output_shape() const = 0;
  /// The inputs whose numbers may differ between calls; not the weights.
  virtual std::vector<CallInput> inputs() const = 0;
  /// Swaps the tensors of inputs() with others of the same form, in the same order.
  virtual void exchange(std::vector<CallInput>& others) = 0;
  /// Whether forward() returns the output of its only mix.
  virtual bool is_mix() const { return false; }
  /// The bytes of the state from which the timed body continues; 0 = it has none.
  virtual std::int64_t state_bytes() const { return 0; }
  virtual std::size_t mixes() const { return 1; }
  /// The mechanism and the inputs of mix `index`, of a model that of block `index`.
  virtual InnerMix mix(std::size_t index) = 0;
};

/// The target of the settings' scope; the seed alone determines its numbers. `make` is for the
/// problem.
std::unique_ptr<BenchmarkTarget> make_target(const MakeMixer& make, const CallSettings& settings,
                                             std::uint64_t seed);

}  // namespace attnbench::tasks::call
