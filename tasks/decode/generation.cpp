#include "tasks/decode/generation.hpp"

#include <algorithm>
#include <new>
#include <numeric>

#include "tasks/forecast.hpp"
#include "tasks/ragged.hpp"

namespace attnbench::tasks::decode {
Generation::Generation(const Registry& registry, const ResolvedCell& cell,
                       const TaskForecast& forecast, std::uint64_t seed)
    : problem_(forecast.problem),
      context_length_(forecast.problem.length),
      lengths_(lengths_from(cell.settings, forecast.problem)),
      implementation_(chosen(registry, cell, forecast)) {
  at::manual_seed(seed);
  const std::int64_t steps = cell.settings.integer("steps");
  TaskForecast whole = forecast;
  whole.problem = problem_of(context_length_ + steps);
  mechanism_ = make_mechanism(registry, cell, whole);
  if (cell.settings.text("positions") == "rotary") rotated_ = rotated_parts(*mechanism_);
  inputs_ = random_inputs(*mechanism_, seed, cell.settings.number("input_scale"),
                          /*requires_grad=*/false);
  inputs_.key_mask =
      real_tokens(lengths_, context_length_ + steps, Padding::before, problem_.device);
  context_ = token_slice(*mechanism_, inputs_, 0, context_length_);
  for (std::int64_t i = 0; i < steps; ++i) {
    steps_.push_back(token_slice(*mechanism_, inputs_, context_length_ + i, 1));
    steps_.back().key_mask.reset();  // all tokens of a step are real
  }
}

std::int64_t Generation::context_tokens() const {
  if (lengths_.empty()) return problem_.batch * context_length_;
  return std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
}

Problem Generation::problem_of(std::int64_t length) const {
  Problem problem = problem_;
  problem.length = problem.key_length = length;
  return problem;
}

Inputs Generation::placed(const Inputs& inputs, std::int64_t first) const {
  return with_rotary_positions(rotated_, inputs, first);
}

State Generation::empty_state(std::int64_t tokens) const {
  const auto type =
      at::TensorOptions(scalar_type(problem_.dtype)).device(at::Device(problem_.device));
  return mechanism_->empty_state(problem_.batch, tokens, type);
}

at::Tensor Generation::read_context() {
  State state = empty_state(context_length_ + steps());
  const at::Tensor output = mix(context_, state);
  after_context_ = std::make_unique<ResettableState>(std::move(state));
  return output;
}

at::Tensor Generation::first_step() {
  after_context_->reset();
  return mix(steps_.front(), after_context_->state());
}

std::vector<at::Tensor> Generation::all_steps() {
  after_context_->reset();
  std::vector<at::Tensor> outputs;
  for (const Inputs& step : steps_) outputs.push_back(mix(step, after_context_->state()));
  return outputs;
}

Values Generation::metered_step(MemoryMeter& meter) {
  after_context_->reset();
  std::int64_t input_bytes = 0;
  for (const auto& [role, tensor] : steps_.front().tensors) {
    input_bytes += static_cast<std::int64_t>(tensor.nbytes());
  }
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  const at::Tensor output = mix(steps_.front(), after_context_->state());
  const std::int64_t peak = meter.peak_bytes();
  const auto output_bytes = static_cast<std::int64_t>(output.nbytes());
  return {{"input_bytes", input_bytes},
          {"output_bytes", output_bytes},
          {"workspace_bytes", std::max<std::int64_t>(0, peak - before - output_bytes)},
          {"peak_bytes", peak}};
}

/// Prepares new inputs for each call, where copies fit into memory. A latent stream keeps its own,
/// which are a part of the state.
void Generation::make_fresh(std::uint64_t seed) {
  std::vector<CallInput> inputs;
  for (const Role& role : mechanism_->roles()) {
    if (role.source != Source::latent_stream) inputs.push_back({role.name, inputs_[role.name], 2});
  }
  try {
    fresh_.emplace(std::move(inputs), seed);
  } catch (const std::bad_alloc&) {
  } catch (const c10::OutOfMemoryError&) {
  }
}

/// Runs before each call: frees the outputs of the last one, except on a device, where a recording
/// writes to them, and renews `count` tokens from `begin` on.
std::function<void()> Generation::refresh(std::int64_t begin, std::int64_t count) {
  if (fresh_) fresh_->limit(begin, begin + count);
  outputs_.assign(steps_.size(), {});
  return [this] {
    if (problem_.device == "cpu") {
      for (at::Tensor& output : outputs_) output.reset();
    }
    if (fresh_) fresh_->renew();
  };
}

/// Recordable, since the position of the state is the same for each call.
Body Generation::from_context(std::function<void()> call, std::int64_t tokens) {
  return {std::move(call), [this] { after_context_->reset(); }, /*recordable=*/true,
          refresh(context_length_, tokens)};
}

Body Generation::step_body() {
  return from_context([this] { outputs_[0] = mix(steps_.front(), after_context_->state()); }, 1);
}

Body Generation::generation_body() {
  const auto call = [this] {
    for (std::size_t i = 0; i < steps_.size(); ++i) {
      outputs_[i] = mix(steps_[i], after_context_->state());
    }
  };
  return from_context(call, steps());
}

Body Generation::prefill_body() {
  const auto state = std::make_shared<State>();
  return {[this, state] { outputs_[0] = mix(context_, *state); },
          [this, state] { *state = empty_state(context_length_ + steps()); },
          /*recordable=*/false, refresh(0, context_length_)};
}

Inputs Generation::last_inputs() const {
  Inputs last = inputs_;
  for (const CallInput& copy : fresh_->copies()) last.tensors[copy.name] = copy.tensor;
  return placed(last, 0);
}

}  // namespace attnbench::tasks::decode
