#include "tasks/crossover/pairwise_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <new>

#include "tasks/call/cost.hpp"
#include "tasks/call/subject.hpp"
#include "tasks/forecast.hpp"

namespace attnbench::tasks::crossover {
namespace {

/// An exact form this many times slower than the fastest at one length is not tried at longer ones,
/// if that length takes so long that fixed costs do not decide.
constexpr double left_behind_ratio = 2.5;
constexpr double left_behind_seconds = 1e-3;
/// Share of the sampling time that choosing between exact forms gets.
constexpr double choosing_patience = 0.25;
/// A search has many lengths, and each is checked on a few rows only.
constexpr double timed_check_seconds = 0.01;
/// Calls of each side that a comparison makes at least, warm-up included.
constexpr double least_calls = 10;

double now() {
  const auto since = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(since).count();
}

Forecast forecast_at(const Registry& registry, const Cell& cell, const call::Settings& settings) {
  Forecast forecast = forecast_mix(registry, cell, settings.problem);
  call::price(forecast, registry, cell, settings);
  return forecast;
}

Faster faster_of(const Comparison& times) {
  if (times.ratio_high < 1) return Faster::mechanism;
  return times.ratio_low > 1 ? Faster::exact : Faster::undecided;
}

std::string mebibytes(double bytes) {
  return std::to_string(std::lround(bytes / 1048576.0)) + " MiB";
}

}  // namespace

Json Fought::to_json() const {
  Json row = {{"length", trial.length}, {"faster", to_string(trial.faster)}};
  if (trial.faster == Faster::untried) {
    row["reason"] = reason;
    return row;
  }
  row.update({{"seconds", times.second_seconds},
              {"exact_seconds", times.first_seconds},
              {"ratio", times.ratio},
              {"pairs", times.pairs},
              {"stop", times.stop},
              {"implementation", implementation},
              {"against", exact.mechanism + "/" + exact.implementation}});
  if (std::isfinite(times.ratio_high)) {
    row["ratio_low"] = times.ratio_low;
    row["ratio_high"] = times.ratio_high;
  }
  return row;
}

Duels::Duels(const Registry& registry, const Settings& settings, Context& context)
    : registry_(registry), settings_(settings), context_(context), begin_(now()) {}

double Duels::elapsed_seconds() const { return now() - begin_; }

bool Duels::has_time_for(std::int64_t length) {
  if (context_.cancelled()) {
    stopped_ = "it was cancelled";
    return false;
  }
  const Fought* near = nullptr;  // the next longer one, else the longest
  for (const auto& [tried, fought] : fought_) {
    if (fought.trial.faster != Faster::untried) near = &fought;
    if (tried >= length) break;
  }
  if (near == nullptr) return true;
  const double growth =
      std::max(1.0, static_cast<double>(length) / static_cast<double>(near->trial.length));
  const double once =
      near->times.first_seconds * growth * growth + near->times.second_seconds * growth;
  if (elapsed_seconds() + least_calls * once <= settings_.round_seconds) return true;
  stopped_ = "length " + std::to_string(length) + " would have taken more than the round's " +
             std::to_string(std::lround(settings_.round_seconds)) + " s (round_seconds)";
  return false;
}

std::vector<Duels::Contender> Duels::exact_at(std::int64_t length, double mechanism_bytes,
                                              std::string& why) {
  const auto limit = static_cast<double>(context_.memory().limit_bytes());
  std::vector<Contender> contenders;
  for (const Cell& cell : settings_.exact) {
    Forecast forecast = forecast_at(registry_, cell, call_at(cell, length));
    if (!forecast.support) {
      why = forecast.support.reason;
      continue;
    }
    const auto behind = left_behind_.find(forecast.implementation);
    if (behind != left_behind_.end() && behind->second < length) continue;
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

std::optional<Trial> Duels::at(std::int64_t length) {
  if (!has_time_for(length)) return std::nullopt;
  Fought fought;
  fought.trial.length = length;
  const Cell& cell = settings_.mechanism;
  const Contender mechanism{cell, forecast_at(registry_, cell, call_at(cell, length))};
  std::vector<Contender> exact;
  if (mechanism.forecast.support) {
    exact = exact_at(length, mechanism.forecast.peak_bytes, fought.reason);
  } else {
    fought.reason = mechanism.forecast.support.reason;
  }
  if (!stopped_.empty()) return std::nullopt;
  if (!exact.empty()) {
    try {
      fought = fight(length, mechanism, exact);
    } catch (const std::bad_alloc& error) {
      stopped_ = "length " + std::to_string(length) + " did not fit in memory: " + error.what();
      return std::nullopt;
    }
  }
  context_.progress(static_cast<double>(fought_.size()), static_cast<double>(fought_.size() + 1),
                    "length " + std::to_string(length));
  fought_[length] = fought;
  return fought.trial;
}

Fought Duels::fight(std::int64_t length, const Contender& mechanism,
                    const std::vector<Contender>& exact) {
  const auto subject_of = [&](const Contender& contender) {
    auto subject = std::make_unique<call::Subject>(registry_, contender.cell, contender.forecast,
                                                   call_at(contender.cell, length));
    subject->prepare(context_.seed());
    return subject;
  };
  const Contender* fastest = &exact.front();
  auto best = subject_of(*fastest);
  bool unknown = false;  // which of the exact forms is the fastest
  for (std::size_t i = 1; i < exact.size(); ++i) {
    auto other = subject_of(exact[i]);
    const Comparison times = context_.compare(best->body(), other->body(), choosing_patience);
    unknown = unknown || times.stop == "disturbed";
    const bool better = times.ratio < 1;
    const double lead = better ? 1 / times.ratio : times.ratio;
    const double seconds = std::min(times.first_seconds, times.second_seconds);
    if (times.stop != "disturbed" && lead > left_behind_ratio && seconds > left_behind_seconds) {
      left_behind_[(better ? *fastest : exact[i]).forecast.implementation] = length;
    }
    if (!better) continue;
    fastest = &exact[i];
    best = std::move(other);
  }
  const auto subject = subject_of(mechanism);
  Fought fought;
  fought.times = context_.compare(best->body(), subject->body(), 1);
  if (unknown) {
    const Comparison nothing;
    fought.times.stop = "disturbed";
    fought.times.ratio_low = nothing.ratio_low;
    fought.times.ratio_high = nothing.ratio_high;
  }
  fought.trial = {length, faster_of(fought.times), fought.times.ratio};
  fought.implementation = mechanism.forecast.implementation;
  fought.exact = fastest->cell;
  fought.exact.implementation = fastest->forecast.implementation;
  const auto look_at = [&](call::Subject& one, const std::string& name) {
    const Json found = one.timed_check(context_.seed(), context_.round(), timed_check_seconds);
    if (found["verdict"] == "ok" || !fought.wrong.empty()) return;
    fought.wrong = name + " at length " + std::to_string(length) + ": " +
                   found.value("reason", "its values are wrong");
  };
  look_at(*subject, mechanism.cell.mechanism + "/" + fought.implementation);
  look_at(*best, fought.exact.mechanism + "/" + fought.exact.implementation);
  return fought;
}

Json Duels::timed_check() const {
  Json section = {{"verdict", "ok"}, {"lengths", 0}};
  int lengths = 0;
  for (const auto& [length, fought] : fought_) {
    if (fought.trial.faster == Faster::untried) continue;
    section["lengths"] = ++lengths;
    if (fought.wrong.empty() || section.contains("reason")) continue;
    section.update({{"verdict", "wrong"}, {"reason", fought.wrong}});
  }
  return section;
}

Json Duels::check(const Fought& fought) {
  const std::int64_t length = fought.trial.length;
  const auto checked = [&](const Cell& cell) {
    const call::Settings settings = call_at(cell, length);
    call::Subject subject(registry_, cell, forecast_at(registry_, cell, settings), settings);
    subject.prepare(context_.seed());
    return subject.check(context_.seed());
  };
  Cell mechanism = settings_.mechanism;
  mechanism.implementation = fought.implementation;
  Json section = checked(mechanism);
  section["length"] = length;
  section["exact"] = checked(fought.exact);
  if (section["verdict"] == "ok" && section["exact"]["verdict"] != "ok") {
    section["verdict"] = "wrong";
    section["reason"] =
        fought.exact.mechanism + "/" + fought.exact.implementation +
        ", which it is compared with: " + section["exact"].value("reason", "its values are wrong");
  }
  return section;
}

}  // namespace attnbench::tasks::crossover
