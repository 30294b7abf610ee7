// Generation: a mechanism with its inputs and its state, ready to read a context and to generate
// tokens from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "attention/layer.hpp"
#include "core/json_object.hpp"
#include "tasks/continuation.hpp"
#include "tasks/fresh_inputs.hpp"
#include "tasks/task.hpp"

namespace attnbench::tasks::decode {

/// Contexts of several lengths are padded in front, so that each ends beside the token that
/// continues it: windows and decays count from there. Their padding is masked.
class Generation {
 public:
  /// Makes mechanism and inputs from `seed`. `forecast` is that of a supported cell, its length
  /// that of the longest context; `registry` must outlive this object.
  Generation(const Registry& registry, const ResolvedCell& cell, const TaskForecast& forecast,
             std::uint64_t seed);

  std::int64_t context_length() const { return context_length_; }
  /// The tokens of each context, where they differ; else none.
  const std::vector<std::int64_t>& lengths() const { return lengths_; }
  /// The real tokens of all contexts together.
  std::int64_t context_tokens() const;
  std::int64_t steps() const { return static_cast<std::int64_t>(steps_.size()); }
  Mechanism& mechanism() const { return *mechanism_; }
  /// The inputs of the context and all steps.
  const Inputs& inputs() const { return inputs_; }
  /// The inputs as the mix gets them: rotated to their positions, if the cell says so.
  Inputs mixed_inputs() const { return placed(inputs_, 0); }
  /// The problem of `length` tokens.
  Problem problem_of(std::int64_t length) const;
  /// An empty state with room for `tokens`.
  State empty_state(std::int64_t tokens) const;

  /// Reads the context; returns its output. Comes before all below.
  at::Tensor read_context();
  /// The output of one step from the context.
  at::Tensor first_step();
  /// The outputs of all steps from the context.
  std::vector<at::Tensor> all_steps();
  /// The memory of one step: {input_bytes, output_bytes, workspace_bytes, peak_bytes}.
  Values metered_step(MemoryMeter& meter);

  /// Allocates copies of the inputs, if they fit; see FreshInputs.
  void make_fresh(std::uint64_t seed);
  const std::optional<FreshInputs>& fresh() const { return fresh_; }
  /// Timed bodies. Each writes its outputs to outputs() and gets new numbers before every call.
  Body step_body();
  Body generation_body();
  Body prefill_body();
  /// The outputs of the last timed call, one for each step, undefined where it has none.
  const std::vector<at::Tensor>& outputs() const { return outputs_; }
  /// The inputs of the last timed call, as the mix got them. Only with copies.
  Inputs last_inputs() const;

 private:
  at::Tensor mix(const Inputs& inputs, State& state) {
    if (rotated_.empty()) return implementation_.mix(*mechanism_, inputs, &state).output;
    return implementation_.mix(*mechanism_, placed(inputs, state.position), &state).output;
  }
  /// Inputs of tokens from position `first` on, as the mix gets them.
  Inputs placed(const Inputs& inputs, std::int64_t first) const;
  std::function<void()> refresh(std::int64_t begin, std::int64_t count);
  Body from_context(std::function<void()> call, std::int64_t tokens);

  const Problem problem_;
  const std::int64_t context_length_;
  const std::vector<std::int64_t> lengths_;
  const Implementation implementation_;
  std::shared_ptr<Mechanism> mechanism_;
  std::vector<RotatedPart> rotated_;  ///< empty without rotary positions
  Inputs inputs_;
  Inputs context_;             ///< inputs of the context
  std::vector<Inputs> steps_;  ///< inputs of each step
  std::unique_ptr<ResettableState> after_context_;
  std::optional<FreshInputs> fresh_;  ///< none where copies do not fit
  std::vector<at::Tensor> outputs_;
};

}  // namespace attnbench::tasks::decode
