#include "harness/worker/context.hpp"

#include <chrono>
#include <limits>
#include <thread>

#include "attention/torch/cuda.hpp"
#include "core/statistics.hpp"
#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/disturbed_round.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/pairs.hpp"
#include "harness/worker/allocator.hpp"

namespace attnbench::worker {
namespace {

/// OpenMP's threads keep spinning for some milliseconds after a parallel operation, and would
/// compete with the calibration for the same cores.
void let_threads_rest() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }

/// All that comes before a call, unclocked.
std::function<void()> before_of(const tasks::Body& body) {
  if (!body.refresh) return body.before;
  return [&body] {
    body.refresh();
    if (body.before) body.before();
  };
}

/// More threads than there are CPUs are pinned to none.
constexpr int every_cpu = std::numeric_limits<int>::max();

}  // namespace

ChildContext::ChildContext(WorkSettings settings, const Registry& registry, Progress progress,
                           std::function<bool()> cancelled)
    : settings_(std::move(settings)),
      registry_(registry),
      progress_(std::move(progress)),
      cancelled_(std::move(cancelled)),
      device_(measure::usable_device(settings_.device)),
      stopwatch_(device_.stopwatch()),
      cpus_(measure::pin_to_cpus(settings_.pinned ? at::get_num_threads() : every_cpu)) {
  cores_ = measure::shared_cores(cpus_);
  begin_ = stopwatch_->now();
  life_.begin();
  if (is_cuda(settings_.device)) {
    meter_ = std::make_unique<DeviceMeter>(settings_.device, settings_.device_bytes);
  }
}

ChildContext::~ChildContext() = default;

ChildContext::PartClock::PartClock(ChildContext& context, std::string name)
    : context_(context),
      name_(std::move(name)),
      begin_(context.stopwatch_->now()),
      noted_before_(context.noted_seconds()) {}

ChildContext::PartClock::~PartClock() {
  const double passed = context_.stopwatch_->now() - begin_;
  context_.parts_[name_] += passed - (context_.noted_seconds() - noted_before_);
}

double ChildContext::noted_seconds() const {
  double sum = 0;
  for (const auto& [name, seconds] : parts_) sum += seconds;
  return sum;
}

double ChildContext::calibrated() {
  return part("calibration", [this] {
    let_threads_rest();
    return device_.calibration_seconds(at::get_num_threads());
  });
}

double ChildContext::measure(const std::string& what, const tasks::Body& body) {
  const double before = calibrated();
  result::TimingRound timing;
  timing.round = settings_.round;
  const std::vector<double> counted = counted_samples(body, timing);
  const double median = attnbench::median(counted);
  const double calibration = (before + calibrated()) / 2;
  timing.median_seconds = median;
  timing.calibration_seconds = calibration;
  if (const auto interval = median_interval(counted)) {
    timing.low_seconds = interval->low;
    timing.high_seconds = interval->high;
  }
  if (const double ratio = device_.clock_ratio(); ratio > 0) timing.clock_ratio = ratio;
  timing_[what] = std::move(timing);
  calibrations_.push_back(calibration);
  return median;
}

std::vector<double> ChildContext::counted_samples(const tasks::Body& body,
                                                  result::TimingRound& timing) {
  const measure::CpuTimes before = measure::cpu_times(cpus_);
  const measure::CpuTimes cores_before = measure::cpu_times(cores_);
  measure::Samples samples = part("samples", [&] { return sampled(body, timing); });
  parts_["samples"] -= samples.warm_up_seconds;
  parts_["warm_up"] += samples.warm_up_seconds;
  const measure::CpuShares shares = measure::cpu_shares(before, measure::cpu_times(cpus_));
  const measure::CpuShares cores = measure::cpu_shares(cores_before, measure::cpu_times(cores_));
  timing.samples_seconds = samples.seconds;
  timing.stop = samples.stop;
  // A device keeps working while its host waits.
  if (samples.beside.empty()) return samples.seconds;
  measure::judge_interference(timing, samples, at::get_num_threads(), shares, cores);
  return samples.counted();
}

measure::Samples ChildContext::sampled(const tasks::Body& body, result::TimingRound& timing) {
  const auto sample = [&](const std::function<void()>& timed) {
    return measure::sample(*stopwatch_, settings_.rule, timed, before_of(body));
  };
  if (!is_cuda(settings_.device)) return sample(body.call);
  const auto recorder = [this](const measure::PairedBody& wanted, std::string& why) {
    return recorded(settings_.device, wanted.call, wanted.before, why);
  };
  const measure::Recording recording =
      measure::record_if_short(*stopwatch_, {body.call, body.before}, body.recordable, recorder);
  if (recording.wanted()) timing.graph = bool(recording.play);
  if (recording.play) return sample(recording.play);
  if (recording.wanted()) timing.graph_reason = recording.why;
  return sample(body.call);
}

tasks::PairedTimes ChildContext::compare(const tasks::Body& first, const tasks::Body& second,
                                         double patience) {
  measure::SamplingRule rule = settings_.rule;
  rule.warmup_seconds *= patience;
  rule.max_seconds *= patience;
  const measure::CpuTimes before = measure::cpu_times(cpus_);
  measure::Pairs pairs = measure::sample_pairs(*stopwatch_, rule, {first.call, before_of(first)},
                                               {second.call, before_of(second)});
  const measure::CpuShares shares = measure::cpu_shares(before, measure::cpu_times(cpus_));
  if (!pairs.preempted.empty() && measure::waited_for_own(pairs.lost_seconds, shares)) {
    pairs.preempted.clear();
    if (pairs.stop == "disturbed") pairs.stop = "time";
  }
  tasks::PairedTimes comparison;
  comparison.first_seconds = attnbench::median(pairs.first_seconds);
  comparison.second_seconds = attnbench::median(pairs.second_seconds);
  comparison.ratio = measure::ratio_median(pairs);
  if (const auto interval = measure::ratio_interval(pairs)) {
    comparison.ratio_low = interval->low;
    comparison.ratio_high = interval->high;
  }
  comparison.pairs = pairs.stop == "disturbed" ? pairs.first_seconds.size() : pairs.clean();
  comparison.stop = pairs.stop;
  return comparison;
}

tasks::MemoryMeter& ChildContext::memory() {
  if (meter_) return *meter_;
  return cpu_memory();
}

void ChildContext::progress(double done, double total, std::string_view what) {
  if (!progress_) return;
  const double now = stopwatch_->now();
  const bool last = done >= total;
  if (!last && now - last_progress_ < 0.1) return;
  last_progress_ = now;
  progress_(done, total, what);
}

bool ChildContext::cancelled() const { return cancelled_ && cancelled_(); }

result::Measured ChildContext::measured() {
  result::Measured measured;
  measured.timing = timing_;
  measured.further = {{"threads", at::get_num_threads()}, {"cpus", cpus_}, {"parts", parts_}};
  if (!calibrations_.empty()) measured.calibration_seconds = attnbench::median(calibrations_);
  if (meter_) measured.device_memory = meter_->to_json().get<Values>();
  const double passed = stopwatch_->now() - begin_;
  if (!is_cuda(settings_.device) && passed > 0) {
    measured.lost_share = measure::rounded_share(life_.end().lost_seconds / passed);
  }
  return measured;
}

}  // namespace attnbench::worker
