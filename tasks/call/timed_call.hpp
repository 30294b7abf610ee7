// TimedCall: one mechanism with its inputs, ready to be timed, checked and metered at one size.
#pragma once

#include <memory>
#include <optional>

#include "tasks/call/benchmark_target.hpp"
#include "tasks/call/settings.hpp"
#include "tasks/check.hpp"
#include "tasks/fresh_inputs.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::call {

class TimedCall {
 public:
  /// `registry` must outlive the call; `forecast` is that of a supported cell. Throws what the
  /// mechanism's construction throws.
  TimedCall(const Registry& registry, ResolvedCell cell, TaskForecast forecast,
            CallSettings settings);

  /// Makes mechanism, weights and inputs; `seed` and the sizes alone determine their numbers.
  void prepare(std::uint64_t seed);

  /// The call and what precedes it, unclocked. Refers to this object. Each call finds new numbers
  /// in its inputs, which needs a copy of them: see FreshInputs.
  Body body();

  /// Checks values, and the gradient where the pass has one, against the definition: see check_mix.
  /// Checks the output; in a model, the mixes of blocks that stand for all on their own inputs, and
  /// gives the worst result.
  CheckSection check(std::uint64_t seed);

  /// Checks the calls of `body` after the last of them: its output against the definition on
  /// sampled rows (see check_output); output and gradients as a whole against the same call
  /// repeated in other memory; inputs unchanged, and nothing running after a call has returned.
  /// `round` determines the rows; the first round also checks a gradient again. `skipped` says so
  /// where memory is short.
  CheckSection timed_check(std::uint64_t seed, int round, double seconds = 0.03);

  /// The record's section `memory` of one pass: {input_bytes, output_bytes, saved_bytes?,
  /// gradient_bytes?, workspace_bytes, peak_bytes}. saved: what the graph keeps for the backward
  /// pass beyond inputs and output. gradient: what the backward pass leaves. workspace: the most in
  /// use at once beyond all of those. peak: all tensors of the process at the worst moment.
  Values metered(MemoryMeter& meter);

  /// The record's metrics of what is not an ordinary call: those of padding, and the bytes of the
  /// state from which it continues.
  Values metrics() const;

  const TaskForecast& forecast() const { return forecast_; }

 private:
  at::Tensor forward() { return target_->forward(); }
  /// The call as if it were the first one.
  at::Tensor forward_again();
  void clear_gradients();
  void make_fresh();
  MixCase case_of(const InnerMix& inner, std::uint64_t seed) const;
  Values metered_forward(MemoryMeter& meter, std::int64_t input_bytes);
  /// The checks on the copies of the inputs: the repeated call, then its mixes on sampled rows.
  CheckSection checked_again(std::uint64_t seed, int round, double seconds);
  CheckSection check_mixes(const at::Tensor& timed, std::uint64_t seed, int round, double seconds);

  const Registry& registry_;
  const ResolvedCell cell_;
  const TaskForecast forecast_;
  const CallSettings settings_;
  std::uint64_t seed_ = 0;
  std::unique_ptr<BenchmarkTarget> target_;
  at::Tensor upstream_;
  at::Tensor output_;                 ///< of the last forward pass
  std::optional<FreshInputs> fresh_;  ///< none where copies do not fit
  std::vector<at::Tensor> leaves_;    ///< tensors that get a gradient in a backward pass
};

}  // namespace attnbench::tasks::call
