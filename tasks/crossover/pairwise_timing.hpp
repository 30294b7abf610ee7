// Duel: at one length, the fastest exact form found by measurement, then mechanism against it.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "tasks/crossover/settings.hpp"

namespace attnbench::tasks::crossover {

/// What was measured at one length.
struct Fought {
  Trial trial;
  Comparison times;            ///< first is the exact one
  std::string implementation;  ///< of the mechanism
  Cell exact;                  ///< the fastest, its implementation resolved
  std::string reason;          ///< where untried
  /// Why a timed call of either side was wrong; empty where all were right.
  std::string wrong;

  /// {length, faster, seconds, exact_seconds, ratio, ratio_low?, ratio_high?, pairs, stop,
  /// implementation, against}; {length, faster, reason} where untried.
  Json to_json() const;
};

class Duels {
 public:
  /// All must outlive the duels. `begin` counts against the round's seconds.
  Duels(const Registry& registry, const Settings& settings, Context& context);

  /// Compares at one length; nothing, and `stopped` says why, where there is no more time or
  /// memory.
  std::optional<Trial> at(std::int64_t length);

  /// Both sides at that length against their definitions: {verdict, reason?, length, exact: {…}}
  /// and all that the mechanism's check says.
  Json check(const Fought& fought);

  /// Of all lengths' timed calls: {verdict, reason?, lengths}.
  Json timed_check() const;

  const std::map<std::int64_t, Fought>& fought() const { return fought_; }
  const std::string& stopped() const { return stopped_; }

 private:
  struct Contender {
    Cell cell;
    Forecast forecast;
  };

  bool has_time_for(std::int64_t length);
  /// The exact forms that are tried at this length; empty with the reason in `why`.
  std::vector<Contender> exact_at(std::int64_t length, double mechanism_bytes, std::string& why);
  Fought fight(std::int64_t length, const Contender& mechanism,
               const std::vector<Contender>& exact);
  double elapsed_seconds() const;

  const Registry& registry_;
  const Settings& settings_;
  Context& context_;
  const double begin_;
  std::map<std::int64_t, Fought> fought_;
  /// By implementation: from which length on it is too slow to be the fastest.
  std::map<std::string, std::int64_t> left_behind_;
  std::string stopped_;
};

}  // namespace attnbench::tasks::crossover
