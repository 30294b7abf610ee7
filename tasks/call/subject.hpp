// Subject: one mechanism with its inputs, ready to be called, checked and metered at one size.
#pragma once

#include <memory>
#include <optional>

#include "tasks/call/benchmark_target.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/fresh_inputs.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::call {

class Subject {
 public:
  /// `registry` must outlive the subject; `forecast` is that of a supported cell. Throws what the
  /// mechanism's construction throws.
  Subject(const Registry& registry, Cell cell, Forecast forecast, Settings settings);

  /// Makes mechanism, weights and inputs; `seed` and the sizes alone decide their numbers.
  void prepare(std::uint64_t seed);

  /// What the clock sees, and what comes before each call, unclocked. Refers to the subject. Each
  /// call finds other numbers in its inputs, which takes a copy of them: see FreshInputs.
  Body body();

  /// Values, and the gradient where the pass has one, against the definition: see check_mix. Of a
  /// model, the mixes of the first and the last block on their own inputs; the worse one's numbers.
  Json check(std::uint64_t seed);

  /// What became of the calls of `body`, after the last of them: its output against the definition
  /// on sampled rows (see check_output), and output and gradients as a whole against the same call
  /// made again in other memory; nothing that it read may have changed, and nothing may go on after
  /// a call has returned. `round` decides which rows; the first also checks a gradient anew.
  /// {verdict, reason?, …}, {verdict: ok, skipped} where memory is short.
  Json timed_check(std::uint64_t seed, int round, double seconds = 0.1);

  /// Memory of one pass: see `metered`.
  Json metered(MemoryMeter& meter);

  const Forecast& forecast() const { return forecast_; }

 private:
  at::Tensor forward();
  void clear_gradients();
  void make_fresh();
  /// With the copies in the place of the inputs.
  Json checked_again(std::uint64_t seed, int round, double seconds);

  const Registry& registry_;
  const Cell cell_;
  const Forecast forecast_;
  const Settings settings_;
  const Implementation implementation_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<Called> called_;
  at::Tensor upstream_;
  at::Tensor output_;                 ///< of the last forward pass
  std::optional<FreshInputs> fresh_;  ///< none where copies do not fit
  std::vector<at::Tensor> leaves_;    ///< what gets a gradient where there is a backward pass
};

}  // namespace attnbench::tasks::call
