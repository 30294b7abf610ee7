#include "reports/verdict/headline.hpp"

#include <algorithm>

#include "reports/tables/quality.hpp"
#include "reports/verdict/sentences.hpp"

namespace attnbench::reports::verdict {
namespace {

std::string place_words(const Ranking& ranking) {
  if (!ranking.at) return "";
  const std::string place = place_text(ranking.axis, *ranking.at);
  if (ranking.place == "length") return " at " + place + " tokens";
  if (ranking.place == "latents_total") return " at " + place + " latents";
  if (ranking.place == "latents_per_head") return " at " + place + " latents per head";
  return " at " + ranking.place + " " + place;
}

/// "highest accuracy", "fewest bits per byte".
std::string extreme(const QualityMeasure& measure) {
  return measure.less_is_better ? measure.best : "highest " + measure.words;
}

/// "4.0 (3.8 to 4.2) times as fast as exact attention"; of several the bounds of all.
std::string speedups_text(const std::vector<const RankedRow*>& rows) {
  const auto end = " times as fast as exact attention";
  if (rows.size() == 1) return times_text(*rows.front()->speedup) + end;
  double low = rows.front()->speedup->low, high = rows.front()->speedup->high;
  for (const RankedRow* row : rows) {
    low = std::min(low, row->speedup->low);
    high = std::max(high, row->speedup->high);
  }
  return range_text(low, high, low < 1.25 && high > 0.8 ? 3 : 2) + end;
}

/// ", and faster from 410 (400 to 420) tokens on"; empty unless both ends of the crossing are known
/// and nothing was slower since.
std::string from_text(const Answer& answer, const Ranking& ranking, const std::string& label) {
  for (const CrossingStatement& one : answer.crossings) {
    const bool known = one.crossing == CrossingKind::found && one.low && !one.within_gap;
    if (one.label == label && known && one.longest == ranking.at) {
      return ", and faster from " + short_text_of(one) + " tokens on";
    }
  }
  return "";
}

}  // namespace

std::string quality_headline(const Answer& answer) {
  const QualityMeasure& measure = answer.measure;
  const auto with_value = [&](const Accuracy& one) {
    return share_text(one.mean) + " (" + named_list({one.label}, "") + ")";
  };
  if (!answer.untrained.empty()) {
    return "It cannot be told what has the " + extreme(measure) + ": " +
           missing_words(answer.untrained);
  }
  if (answer.accuracies.size() < 2) {
    return "The " + measure.words + ": " + with_value(answer.accuracies.front());
  }
  const std::vector<std::string>& best = answer.max_accurate;
  if (best.size() > 1) {
    return "It cannot be told which of " + named_list(best, " and ") + " has the " +
           extreme(measure) + ": their seeds overlap";
  }
  if (best.size() == 1) {
    return named_list(best, "") + " has the " + extreme(measure) + ": " +
           share_text(answer.accuracies.front().mean);
  }
  return "The " + measure.plural + ", from " + with_value(answer.accuracies.front()) + " to " +
         with_value(answer.accuracies.back()) +
         ", are not ranked: that takes two seeds or more of each";
}

std::string time_headline(const Answer& answer, const Fastest& last, const Ranking& ranking) {
  const std::string at = place_words(ranking);
  if (last.labels.empty()) {
    return "It cannot be told what is the fastest" + at + ": " + missing_words(last.missing.below);
  }
  std::vector<const RankedRow*> best;
  bool exact = false, only_exact = true, compared = true;
  for (const RankedRow& row : ranking.rows) {
    if (row.time && !row.exact) only_exact = false;
    if (!row.fastest) continue;
    best.push_back(&row);
    exact = exact || row.exact;
    compared = compared && row.speedup.has_value();
  }
  const std::string pass = "the fastest " + ranking.timed + at;
  if (exact && !only_exact && !ranking.against.empty()) {
    const bool alone =
        std::all_of(best.begin(), best.end(), [](const RankedRow* row) { return row->exact; });
    return alone ? "Nothing is faster than exact attention" + at
                 : "Nothing can be told to be faster than exact attention" + at;
  }
  if (best.size() > 1) {
    return named_list(last.labels, " and ") + ", which cannot be told apart, have " + pass +
           (compared ? ": " + speedups_text(best) : "");
  }
  std::string text = named_list(last.labels, "") + " has " + pass;
  if (!compared) return text;
  return text + ": " + speedups_text(best) + from_text(answer, ranking, last.labels.front());
}

}  // namespace attnbench::reports::verdict
