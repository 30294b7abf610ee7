// Subject: one mechanism with its inputs, ready to be called, checked and metered at one size.
#pragma once

#include <memory>

#include "tasks/call/called.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::call {

class Subject {
 public:
  /// `registry` must outlive the subject; `forecast` is that of a supported cell. Throws what the
  /// mechanism's construction throws.
  Subject(const Registry& registry, Cell cell, Forecast forecast, Settings settings);

  /// Makes mechanism, weights and inputs; `seed` and the sizes alone decide their numbers.
  void prepare(std::uint64_t seed);

  /// What the clock sees, and what comes before each call, unclocked. Refers to the subject.
  Body body();

  /// Values, and the gradient where the pass has one, against the definition: see check_mix. Of a
  /// model, the mixes of the first and the last block on their own inputs; the worse one's numbers.
  Json check(std::uint64_t seed);

  /// Memory of one pass: see `metered`.
  Json metered(MemoryMeter& meter);

  const Forecast& forecast() const { return forecast_; }

 private:
  at::Tensor forward();
  void clear_gradients();

  const Registry& registry_;
  const Cell cell_;
  const Forecast forecast_;
  const Settings settings_;
  const Implementation implementation_;
  std::unique_ptr<Called> called_;
  at::Tensor upstream_;
  at::Tensor output_;  ///< of the forward pass before a backward pass that is timed alone
  std::vector<at::Tensor> leaves_;  ///< what gets a gradient where there is a backward pass
};

}  // namespace attnbench::tasks::call
