// PairwiseTiming: at one length, finds the fastest exact form by measurement, then times the
// mechanism in turns with it.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "tasks/crossover/settings.hpp"
#include "tasks/sections.hpp"

namespace attnbench::tasks::crossover {

/// The result at one length.
struct LengthTiming {
  LengthTrial trial;
  PairedTimes times;           ///< `first` is the exact form
  std::string implementation;  ///< of the mechanism
  ResolvedCell exact;          ///< the fastest exact form, its implementation resolved
  std::string reason;          ///< where untried
  /// The graver of the checks of both sides' timed calls; its reason names side and length.
  CheckSection timed_check;

  /// The comparison as the record has it.
  result::ComparedLength section() const;
  /// The exact form as MECHANISM/IMPLEMENTATION.
  std::string against() const { return exact.mechanism + "/" + exact.implementation; }
};

class PairwiseTiming {
 public:
  /// All must outlive this object. The round's seconds count from here.
  PairwiseTiming(const Registry& registry, const CrossoverSettings& settings, Context& context);

  /// Compares at one length; nothing where time or memory is exhausted, with the reason in
  /// `stopped`.
  std::optional<LengthTrial> at(std::int64_t length);

  /// Checks both sides at that length against their definitions: the mechanism's check, with that
  /// of the exact form as its part "exact".
  CheckSection check(const LengthTiming& timing);

  /// The check of the timed calls at all lengths.
  CheckSection timed_check() const;

  const std::map<std::int64_t, LengthTiming>& timings() const { return timings_; }
  const std::string& stopped() const { return stopped_; }

 private:
  struct Contender {
    ResolvedCell cell;
    TaskForecast forecast;
  };

  bool has_time_for(std::int64_t length);
  /// The exact forms to try at this length; if none, the reason in `why`.
  std::vector<Contender> exact_at(std::int64_t length, double mechanism_bytes, std::string& why);
  LengthTiming time_pair(std::int64_t length, const Contender& mechanism,
                         const std::vector<Contender>& exact);
  double elapsed_seconds() const;

  const Registry& registry_;
  const CrossoverSettings& settings_;
  Context& context_;
  const double begin_;
  std::map<std::int64_t, LengthTiming> timings_;
  /// The length, by implementation, from which on it is too slow to be the fastest.
  std::map<std::string, std::int64_t> too_slow_from_;
  std::string stopped_;
};

}  // namespace attnbench::tasks::crossover
