// The crossover task: searches the length from which on a mechanism is faster than the fastest
// exact attention, with an interval, for one scope and size of the mechanism.
#include <limits>
#include <optional>

#include "tasks/call/settings.hpp"
#include "tasks/crossover/pairwise_timing.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks {
namespace crossover {
namespace {

/// At the shortest coarse length that the cell supports, otherwise the last refusal.
TaskForecast forecast_at_shortest(const Registry& registry, const ResolvedCell& cell,
                                  const Range& range) {
  TaskForecast forecast;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    forecast = call::forecast_call(registry, cell, call_at(cell, length));
    if (forecast.support) break;
  }
  return forecast;
}

/// The FLOPs of one call of the mechanism and one of an exact form at each coarse length, for an
/// estimate of the time. Unsupported lengths add nothing; the other costs are NaN.
Cost cost_of_all(const Registry& registry, const CrossoverSettings& settings) {
  constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
  Cost cost{0, 0, unknown, unknown, unknown, unknown, unknown};
  for (const std::int64_t length : coarse_lengths(settings.range.minimum, settings.range.maximum)) {
    for (const ResolvedCell& cell : {settings.mechanism, settings.exact.back()}) {
      const TaskForecast forecast = call::forecast_call(registry, cell, call_at(cell, length));
      if (!forecast.support) continue;
      cost.model_flops += forecast.cost.model_flops;
      cost.executed_flops += forecast.cost.executed_flops;
    }
  }
  return cost;
}

/// The shortest length of CAB's fits.
constexpr std::int64_t shortest_fitted = 256;

/// The timing that is shown beside the verdict: at the length from which on the mechanism is
/// faster, otherwise at the longest one compared.
const LengthTiming* shown_of(const SearchResult& found, const PairwiseTiming& timing) {
  if (found.high) return &timing.timings().at(*found.high);
  const LengthTiming* longest = nullptr;
  for (const auto& [length, one] : timing.timings()) {
    if (one.trial.faster != Faster::untried) longest = &one;
  }
  return longest;
}

std::vector<result::Crossing> crossings_of(const SearchResult& found) {
  std::vector<result::Crossing> list;
  for (const SideChange& crossing : found.crossings) {
    const Faster to = crossing.from == Faster::exact ? Faster::mechanism : Faster::exact;
    list.push_back({crossing.low, crossing.high, to_string(to), {}});
  }
  return list;
}

std::optional<result::Efficiency> efficiency_of(const PairwiseTiming& timing, const Range& range) {
  std::vector<double> lengths;
  std::vector<double> exact;
  std::vector<double> mechanism;
  for (const std::int64_t length : coarse_lengths(range.minimum, range.maximum)) {
    const auto found = timing.timings().find(length);
    if (length < shortest_fitted || found == timing.timings().end()) continue;
    if (found->second.trial.faster == Faster::untried) continue;
    lengths.push_back(static_cast<double>(length));
    exact.push_back(found->second.times.first_seconds);
    mechanism.push_back(found->second.times.second_seconds);
  }
  const auto found = efficiency_length(lengths, exact, mechanism);
  if (!found) return std::nullopt;
  return result::Efficiency{found->length, {}, {}, found->r2_exact, found->r2_mechanism};
}

class CrossoverWork final : public Work {
 public:
  CrossoverWork(const Registry& registry, const ResolvedCell& cell)
      : registry_(registry), settings_(settings_from(registry, cell)) {}

  void prepare(Context& context) override { timing_.emplace(registry_, settings_, context); }

  /// Searches first: the check is at the length that the search finds.
  Json check(Context&) override {
    run_search();
    return timing_->check(*shown_);
  }

  Json run(Context&) override {
    run_search();
    result::CrossoverRound round;
    round.verdict = found_->verdict;
    round.low = found_->low;
    round.high = found_->high;
    round.crossings = crossings_of(*found_);
    round.implementation = shown_->implementation;
    round.against = shown_->against();
    round.length_minimum = found_->trials.front().length;
    round.length_maximum = found_->trials.back().length;
    round.stopped = timing_->stopped();
    auto& lengths = round.lengths.emplace();
    for (const auto& [length, one] : timing_->timings()) lengths.push_back(one.section());
    round.efficiency = efficiency_of(*timing_, settings_.range);
    RunSections sections;
    sections.chosen = {shown_->implementation, "at length " + std::to_string(shown_->trial.length) +
                                                   ", where the verdict is shown"};
    sections.crossover = std::move(round);
    sections.timed_check = timing_->timed_check();
    return sections;
  }

 private:
  void run_search() {
    if (found_) return;
    found_ = search(settings_.range, [this](std::int64_t length) { return timing_->at(length); });
    shown_ = shown_of(*found_, *timing_);
    if (shown_ != nullptr) return;
    throw UnsupportedError(timing_->stopped().empty()
                               ? "no length can be compared: " + reason_untried()
                               : "no length could be compared: " + timing_->stopped());
  }

  std::string reason_untried() const {
    return timing_->timings().empty() ? "none was tried"
                                      : timing_->timings().begin()->second.reason;
  }

  const Registry& registry_;
  const CrossoverSettings settings_;
  std::optional<PairwiseTiming> timing_;
  std::optional<SearchResult> found_;
  const LengthTiming* shown_ = nullptr;
};

class CrossoverTask final : public Task {
 public:
  std::string name() const override { return "crossover"; }
  std::string title() const override {
    return "The length from which on it is faster than the fastest exact attention";
  }
  std::vector<Option> settings() const override { return declared_settings(); }
  std::vector<std::string> figures() const override { return {"crossover"}; }
  std::string axis() const override { return "size_per_head"; }

  TaskForecast forecast(const Registry& registry, const ResolvedCell& cell) const override {
    const CrossoverSettings settings = settings_from(registry, cell);
    TaskForecast forecast = forecast_at_shortest(registry, cell, settings.range);
    if (!forecast.support) return forecast;
    forecast.cost = cost_of_all(registry, settings);
    return forecast;
  }

  std::unique_ptr<Work> make(const Registry& registry, const ResolvedCell& cell) const override {
    supported_forecast(*this, registry, cell);
    return std::make_unique<CrossoverWork>(registry, cell);
  }
};

}  // namespace
}  // namespace crossover

std::unique_ptr<Task> make_crossover() { return std::make_unique<crossover::CrossoverTask>(); }

}  // namespace attnbench::tasks
