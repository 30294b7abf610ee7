#include "tasks/crossover/pairwise_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "tasks/call/settings.hpp"
#include "tasks/call/timed_call.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::crossover {
namespace {

/// An exact form slower than the fastest by this ratio at one length is not tried at longer ones,
/// provided that the length takes long enough for fixed costs not to matter.
constexpr double too_slow_ratio = 2.5;
constexpr double too_slow_seconds = 1e-3;
/// The share of the sampling time for choosing between exact forms.
constexpr double choosing_patience = 0.25;
/// A search has many lengths; each is checked on few rows.
constexpr double timed_check_seconds = 0.01;
/// The least number of calls of each side in a comparison, warm-up included.
constexpr double least_calls = 10;

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

Faster faster_of(const PairedTimes& times) {
  if (times.ratio_high < 1) return Faster::mechanism;
  return times.ratio_low > 1 ? Faster::exact : Faster::undecided;
}

std::string mebibytes(double bytes) {
  return std::to_string(std::lround(bytes / 1048576.0)) + " MiB";
}

}  // namespace

result::ComparedLength LengthTiming::section() const {
  result::ComparedLength row;
  row.length = trial.length;
  row.faster = to_string(trial.faster);
  if (trial.faster == Faster::untried) {
    row.reason = reason;
    return row;
  }
  row.seconds = times.second_seconds;
  row.exact_seconds = times.first_seconds;
  row.ratio = times.ratio;
  row.pairs = static_cast<std::int64_t>(times.pairs);
  row.stop = times.stop;
  row.implementation = implementation;
  row.against = against();
  if (std::isfinite(times.ratio_high)) {
    row.ratio_low = times.ratio_low;
    row.ratio_high = times.ratio_high;
  }
  return row;
}

PairwiseTiming::PairwiseTiming(const Registry& registry, const CrossoverSettings& settings,
                               Context& context)
    : registry_(registry), settings_(settings), context_(context), begin_(now()) {}

double PairwiseTiming::elapsed_seconds() const { return now() - begin_; }

bool PairwiseTiming::has_time_for(std::int64_t length) {
  if (context_.cancelled()) {
    stopped_ = "it was cancelled";
    return false;
  }
  const LengthTiming* nearest = nullptr;  // the first at least as long, else the longest before it
  for (const auto& [tried, timing] : timings_) {
    if (timing.trial.faster != Faster::untried) nearest = &timing;
    if (tried >= length) break;
  }
  if (nearest == nullptr) return true;
  const double growth =
      std::max(1.0, static_cast<double>(length) / static_cast<double>(nearest->trial.length));
  const double once =
      nearest->times.first_seconds * growth * growth + nearest->times.second_seconds * growth;
  if (elapsed_seconds() + least_calls * once <= settings_.round_seconds) return true;
  stopped_ = "length " + std::to_string(length) + " would have taken more than the round's " +
             std::to_string(std::lround(settings_.round_seconds)) + " s (round_seconds)";
  return false;
}

std::vector<PairwiseTiming::Contender> PairwiseTiming::exact_at(std::int64_t length,
                                                                double mechanism_bytes,
                                                                std::string& why) {
  const auto limit = static_cast<double>(context_.memory().limit_bytes());
  std::vector<Contender> contenders;
  for (const ResolvedCell& cell : settings_.exact) {
    TaskForecast forecast = call::forecast_call(registry_, cell, call_at(cell, length));
    if (!forecast.support) {
      why = forecast.support.reason;
      continue;
    }
    const auto behind = too_slow_from_.find(forecast.implementation);
    if (behind != too_slow_from_.end() && behind->second < length) continue;
    const double wanted = forecast.peak_bytes + mechanism_bytes;
    if (limit > 0 && wanted > limit) {
      why = "length " + std::to_string(length) + " would take " + mebibytes(wanted) + " of the " +
            mebibytes(limit) + " that may be used";
      stopped_ = why;
      continue;
    }
    contenders.push_back({cell, std::move(forecast)});
  }
  if (!contenders.empty()) stopped_.clear();
  return contenders;
}

std::optional<LengthTrial> PairwiseTiming::at(std::int64_t length) {
  if (!has_time_for(length)) return std::nullopt;
  LengthTiming timing;
  timing.trial.length = length;
  const ResolvedCell& cell = settings_.mechanism;
  const Contender mechanism{cell, call::forecast_call(registry_, cell, call_at(cell, length))};
  std::vector<Contender> exact;
  if (mechanism.forecast.support) {
    exact = exact_at(length, mechanism.forecast.peak_bytes, timing.reason);
  } else {
    timing.reason = mechanism.forecast.support.reason;
  }
  if (!stopped_.empty()) return std::nullopt;
  if (!exact.empty()) {
    try {
      timing = time_pair(length, mechanism, exact);
    } catch (const std::bad_alloc& error) {
      stopped_ = "length " + std::to_string(length) + " did not fit in memory: " + error.what();
      return std::nullopt;
    }
  }
  context_.progress(static_cast<double>(timings_.size()), static_cast<double>(timings_.size() + 1),
                    "length " + std::to_string(length));
  timings_[length] = timing;
  return timing.trial;
}

LengthTiming PairwiseTiming::time_pair(std::int64_t length, const Contender& mechanism,
                                       const std::vector<Contender>& exact) {
  const auto prepared = [&](const Contender& contender) {
    auto timed_call = std::make_unique<call::TimedCall>(
        registry_, contender.cell, contender.forecast, call_at(contender.cell, length));
    timed_call->prepare(context_.seed());
    return timed_call;
  };
  const Contender* fastest = &exact.front();
  auto best = prepared(*fastest);
  bool unknown = false;  // whether the fastest exact form is unknown
  for (std::size_t i = 1; i < exact.size(); ++i) {
    auto other = prepared(exact[i]);
    const PairedTimes times = context_.compare(best->body(), other->body(), choosing_patience);
    unknown = unknown || times.stop == "disturbed";
    const bool better = times.ratio < 1;
    const double lead = better ? 1 / times.ratio : times.ratio;
    const double seconds = std::min(times.first_seconds, times.second_seconds);
    if (times.stop != "disturbed" && lead > too_slow_ratio && seconds > too_slow_seconds) {
      too_slow_from_[(better ? *fastest : exact[i]).forecast.implementation] = length;
    }
    if (!better) continue;
    fastest = &exact[i];
    best = std::move(other);
  }
  const auto timed_call = prepared(mechanism);
  LengthTiming timing;
  timing.times = context_.compare(best->body(), timed_call->body(), 1);
  if (unknown) {
    const PairedTimes nothing;
    timing.times.stop = "disturbed";
    timing.times.ratio_low = nothing.ratio_low;
    timing.times.ratio_high = nothing.ratio_high;
  }
  timing.trial = {length, faster_of(timing.times), timing.times.ratio};
  timing.implementation = mechanism.forecast.implementation;
  timing.exact = fastest->cell;
  timing.exact.implementation = fastest->forecast.implementation;
  const auto check_calls = [&](call::TimedCall& one, const std::string& name) {
    CheckSection found = one.timed_check(context_.seed(), context_.round(), timed_check_seconds);
    found.reason = name + " at length " + std::to_string(length) + ": " + found.reason;
    timing.timed_check = worse_of(timing.timed_check, found);
  };
  check_calls(*timed_call, mechanism.cell.mechanism + "/" + timing.implementation);
  check_calls(*best, timing.against());
  return timing;
}

CheckSection PairwiseTiming::timed_check() const {
  CheckSection worst;
  std::size_t lengths = 0;
  for (const auto& [length, timing] : timings_) {
    if (timing.trial.faster == Faster::untried) continue;
    ++lengths;
    worst = worse_of(worst, timing.timed_check);
  }
  CheckSection section;
  section.lengths = lengths;
  if (worst.ok()) return section;
  section.verdict = worst.verdict;
  section.reason = worst.reason;
  return section;
}

CheckSection PairwiseTiming::check(const LengthTiming& timing) {
  const std::int64_t length = timing.trial.length;
  const auto checked = [&](const ResolvedCell& cell) {
    const call::CallSettings settings = call_at(cell, length);
    call::TimedCall timed_call(registry_, cell, call::forecast_call(registry_, cell, settings),
                               settings);
    timed_call.prepare(context_.seed());
    return timed_call.check(context_.seed());
  };
  ResolvedCell mechanism = settings_.mechanism;
  mechanism.implementation = timing.implementation;
  CheckSection section = checked(mechanism);
  section.length = length;
  section.add_part("exact", checked(timing.exact),
                   timing.against() + ", which it is compared with: ");
  return section;
}

}  // namespace attnbench::tasks::crossover
