#include "tasks/call/timed_call.hpp"

#include <algorithm>
#include <new>
#include <utility>

#include "tasks/forecast.hpp"
#include "tasks/ragged.hpp"

namespace attnbench::tasks::call {
namespace {

std::int64_t bytes_of(const at::Tensor& tensor) {
  return static_cast<std::int64_t>(tensor.nbytes());
}

CallSettings on_device(CallSettings settings, const std::string& device) {
  settings.problem.device = device;
  return settings;
}

}  // namespace

TimedCall::TimedCall(const Registry& registry, ResolvedCell cell, TaskForecast forecast,
                     CallSettings settings)
    : registry_(registry),
      cell_(std::move(cell)),
      forecast_(std::move(forecast)),
      settings_(on_device(std::move(settings), cell_.device)) {}

void TimedCall::prepare(std::uint64_t seed) {
  seed_ = seed;
  at::manual_seed(seed);
  TaskForecast whole = forecast_;
  whole.problem = settings_.whole_problem();
  target_ = make_target(mixers(registry_, cell_, whole), settings_, seed);
  leaves_ = target_->leaves();
  if (!settings_.has_backward()) return;
  upstream_ = seeded_normal(target_->output_shape(), seed + 1, 1,
                            scalar_type(settings_.problem.dtype), settings_.problem.device);
}

Body TimedCall::body() {
  make_fresh();
  Body body;
  body.refresh = [this] {
    // Freed first, so that the next output has the same address. Not on a device: a recorded graph
    // writes to the address of the recording.
    if (settings_.problem.device == "cpu") output_.reset();
    if (fresh_) fresh_->renew();
  };
  if (settings_.pass == Pass::forward) {
    body.call = [this] {
      const at::NoGradGuard no_grad;
      output_ = forward();
    };
    if (settings_.past > 0) body.before = [this] { target_->rewind(); };
  } else if (settings_.pass == Pass::forward_backward) {
    body.call = [this] {
      const at::AutoGradMode with_grad(true);
      output_ = forward();
      output_.backward(upstream_);
    };
    body.before = [this] { clear_gradients(); };
  } else {
    body.call = [this] { output_.backward(upstream_); };
    body.before = [this] {
      const at::AutoGradMode with_grad(true);
      clear_gradients();
      output_ = forward();
    };
  }
  return body;
}

void TimedCall::make_fresh() {
  if (fresh_) return;
  std::vector<CallInput> inputs = target_->inputs();
  if (upstream_.defined()) {
    inputs.push_back({"output's gradient", upstream_, upstream_.dim() - 2});
  }
  try {
    fresh_.emplace(std::move(inputs), seed_);
  } catch (const std::bad_alloc&) {
  } catch (const c10::OutOfMemoryError&) {
  }
}

MixCase TimedCall::case_of(const InnerMix& inner, std::uint64_t seed) const {
  MixCase mix = attnbench::tasks::case_of(registry_, mechanism_of(cell_, forecast_, inner.block),
                                          inner.mechanism, inner.inputs, seed);
  mix.past = inner.past;
  return mix;
}

CheckSection TimedCall::check(std::uint64_t seed) {
  CheckSection section;
  const std::vector<std::size_t> blocks = blocks_to_check(forecast_, target_->mixes());
  for (const std::size_t block : blocks) {
    const InnerMix inner = target_->mix(block);
    CheckSection one = check_mix(case_of(inner, seed), settings_.has_backward());
    section = block == 0 ? std::move(one) : worse_of(std::move(section), std::move(one));
  }
  section.mixes = blocks.size();
  return section;
}

Values TimedCall::metered_forward(MemoryMeter& meter, std::int64_t input_bytes) {
  const at::NoGradGuard no_grad;
  target_->rewind();
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  const at::Tensor output = forward();
  const std::int64_t peak = meter.peak_bytes();
  return {{"input_bytes", input_bytes},
          {"output_bytes", bytes_of(output)},
          {"workspace_bytes", std::max<std::int64_t>(0, peak - before - bytes_of(output))},
          {"peak_bytes", peak}};
}

Values TimedCall::metered(MemoryMeter& meter) {
  std::int64_t input_bytes = 0;
  for (const at::Tensor& leaf : leaves_) input_bytes += bytes_of(leaf);
  if (settings_.pass == Pass::forward) return metered_forward(meter, input_bytes);
  const at::AutoGradMode with_grad(true);
  clear_gradients();
  const std::int64_t before = meter.live_bytes();
  meter.reset_peak();
  at::Tensor output = forward();
  const std::int64_t output_bytes = bytes_of(output);
  const std::int64_t saved = std::max<std::int64_t>(0, meter.live_bytes() - before - output_bytes);
  const std::int64_t forward_peak = meter.peak_bytes();
  const bool backward_only = settings_.pass == Pass::backward;
  if (backward_only) meter.reset_peak();
  output.backward(upstream_);
  const std::int64_t peak =
      backward_only ? meter.peak_bytes() : std::max(forward_peak, meter.peak_bytes());
  output.reset();
  const std::int64_t gradients = std::max<std::int64_t>(0, meter.live_bytes() - before);
  clear_gradients();
  const std::int64_t beyond = peak - before - output_bytes - saved - gradients;
  return {{"input_bytes", input_bytes},
          {"output_bytes", output_bytes},
          {"saved_bytes", saved},
          {"gradient_bytes", gradients},
          {"workspace_bytes", std::max<std::int64_t>(0, beyond)},
          {"peak_bytes", peak}};
}

at::Tensor TimedCall::forward_again() {
  target_->rewind();
  return forward();
}

Values TimedCall::metrics() const {
  Values metrics = padding_metrics(settings_.lengths);
  if (const std::int64_t bytes = target_->state_bytes(); bytes > 0) metrics["state_bytes"] = bytes;
  return metrics;
}

void TimedCall::clear_gradients() {
  for (at::Tensor& leaf : leaves_) leaf.mutable_grad().reset();
}

}  // namespace attnbench::tasks::call
