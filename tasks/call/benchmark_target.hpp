// What a call calls: a mix alone, an attention layer, a whole model.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tasks/call/settings.hpp"
#include "tasks/fresh_inputs.hpp"

namespace attnbench::tasks::call {

/// One mix inside of what is called, with what it is given there.
struct InnerMix {
  Mechanism& mechanism;
  Inputs inputs;
};

class Called {
 public:
  virtual ~Called() = default;
  /// The timed body.
  virtual at::Tensor forward() = 0;
  /// Every tensor that the pass reads and that gets a gradient where there is a backward pass.
  virtual std::vector<at::Tensor> leaves() const = 0;
  virtual std::vector<std::int64_t> output_shape() const = 0;
  /// Of those that every call reads anew, not the weights: what may hold other numbers each time.
  virtual std::vector<Given> given() const = 0;
  /// Exchanges the tensors of given() for others of the same form, in the same order.
  virtual void exchange(std::vector<Given>& others) = 0;
  /// Whether what forward() returns is what its only mix does.
  virtual bool is_mix() const { return false; }
  virtual std::size_t mixes() const { return 1; }
  /// What mix number `index` is given; the mechanism is its own.
  virtual InnerMix mix(std::size_t index) = 0;
};

/// What the settings' scope calls; numbers follow the seed alone. `make` returns a mechanism
/// for the problem.
std::unique_ptr<Called> make_called(const std::function<std::shared_ptr<Mechanism>()>& make,
                                    const Implementation& implementation, const Settings& settings,
                                    std::uint64_t seed);

}  // namespace attnbench::tasks::call
