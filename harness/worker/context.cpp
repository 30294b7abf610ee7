#include "harness/worker/context.hpp"

#include <chrono>
#include <thread>

#include "attention/torch.hpp"
#include "harness/measure/device_cpu.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/pairs.hpp"
#include "harness/measure/statistics.hpp"
#include "harness/worker/allocator.hpp"

namespace attnbench::worker {
namespace {

/// OpenMP's threads go on spinning for some milliseconds after a parallel operation, and would
/// compete with the calibration for the same cores.
void let_threads_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

}  // namespace

measure::SamplingRule sampling_rule_from(const Json& said) {
  measure::SamplingRule rule;
  if (!said.is_object()) return rule;
  rule.relative_interval = said.value("relative_interval", rule.relative_interval);
  rule.min_samples = said.value("min_samples", rule.min_samples);
  rule.max_samples = said.value("max_samples", rule.max_samples);
  rule.warmup_seconds = said.value("warmup_seconds", rule.warmup_seconds);
  rule.min_seconds = said.value("min_seconds", rule.min_seconds);
  rule.max_seconds = said.value("max_seconds", rule.max_seconds);
  return rule;
}

ChildContext::ChildContext(RunSettings settings, const Registry& registry, Progress progress,
                           std::function<bool()> cancelled)
    : settings_(std::move(settings)),
      registry_(registry),
      progress_(std::move(progress)),
      cancelled_(std::move(cancelled)),
      device_(measure::usable_device(settings_.device)),
      stopwatch_(device_.stopwatch()),
      cpus_(measure::pin_to_cpus(at::get_num_threads())),
      timing_(Json::object()) {}

ChildContext::~ChildContext() = default;

void ChildContext::measure(const std::string& what, const std::function<void()>& body,
                           const std::function<void()>& prepare) {
  const int threads = at::get_num_threads();
  let_threads_rest();
  const double before = device_.calibration_seconds(threads);
  const measure::Samples samples = measure::sample(*stopwatch_, settings_.rule, body, prepare);
  let_threads_rest();
  const double calibration = (before + device_.calibration_seconds(threads)) / 2;
  Json timing = {{"samples_seconds", samples.seconds},
                 {"median_seconds", measure::median(samples.seconds)},
                 {"stop", samples.stop},
                 {"calibration_seconds", calibration},
                 {"round", settings_.round}};
  if (const auto interval = measure::median_interval(samples.seconds)) {
    timing["low_seconds"] = interval->low;
    timing["high_seconds"] = interval->high;
  }
  timing_[what] = std::move(timing);
  calibrations_.push_back(calibration);
}

tasks::Comparison ChildContext::compare(const tasks::Body& first, const tasks::Body& second,
                                        double patience) {
  measure::SamplingRule rule = settings_.rule;
  rule.warmup_seconds *= patience;
  rule.max_seconds *= patience;
  const measure::Pairs pairs = measure::sample_pairs(*stopwatch_, rule, {first.call, first.before},
                                                     {second.call, second.before});
  tasks::Comparison comparison;
  comparison.first_seconds = measure::median(pairs.first_seconds);
  comparison.second_seconds = measure::median(pairs.second_seconds);
  comparison.ratio = measure::ratio_median(pairs);
  if (const auto interval = measure::ratio_interval(pairs)) {
    comparison.ratio_low = interval->low;
    comparison.ratio_high = interval->high;
  }
  comparison.pairs = pairs.first_seconds.size();
  comparison.stop = pairs.stop;
  return comparison;
}

tasks::MemoryMeter& ChildContext::memory() { return cpu_memory(); }

void ChildContext::progress(double done, double total, std::string_view what) {
  if (!progress_) return;
  const double now = stopwatch_->now();
  const bool last = done >= total;
  if (!last && now - last_progress_ < 0.1) return;
  last_progress_ = now;
  progress_(done, total, what);
}

bool ChildContext::cancelled() const { return cancelled_ && cancelled_(); }

Json ChildContext::measured() const {
  Json measured = {{"timing", timing_}, {"threads", at::get_num_threads()}, {"cpus", cpus_}};
  if (!calibrations_.empty()) measured["calibration_seconds"] = measure::median(calibrations_);
  return measured;
}

}  // namespace attnbench::worker
