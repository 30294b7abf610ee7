#include "harness/program/run/supervise/again.hpp"

#include <algorithm>

#include "core/text/format.hpp"

namespace attnbench::run {
namespace {

using result::CellRecord;

/// The timing that disturbed a cell; null where rounds of it can change nothing.
const result::Timing* disturbed_timing(const CellRecord& cell) {
  if (!result::is_disturbed(cell) || cell.training) return nullptr;
  const result::Timing* const timing = result::timing_of(cell);
  return timing != nullptr && timing->disturbed_rounds() > 0 ? timing : nullptr;
}

int rounds_of(const result::Timing& timing) {
  std::int64_t last = -1;
  for (const result::TimingRound& round : timing.rounds)
    last = std::max(last, round.round.value_or(-1));
  return static_cast<int>(last + 1);
}

}  // namespace

std::optional<Further> Again::operator()(const result::Result& result,
                                         const std::map<std::string, double>& seconds_of_rounds) {
  Further next;
  double seconds = 0, all = 0;
  std::size_t quiet = 0;
  for (const CellRecord& cell : result.cells) {
    const auto known = seconds_of_rounds.find(cell.id);
    const double of_round = known == seconds_of_rounds.end() ? 0 : known->second;
    all += of_round;
    const result::Timing* const timing = disturbed_timing(cell);
    if (timing == nullptr) continue;
    next.cells.insert(cell.id);
    next.begin = std::max(next.begin, rounds_of(*timing));
    seconds += of_round;
    quiet += timing->rounds.empty() || timing->rounds.back().disturbed ? 0 : 1;
  }
  next.end = next.begin + 1;
  if (next.cells.empty() || next.begin < 2) return std::nullopt;  // one round ranks nothing
  const bool first = asked_ == 0;
  if (first) {
    asked_ = next.begin;
    seconds_left_ = all * asked_ / 2;
  }
  const bool helps = first ? 2 * next.cells.size() < result.cells.size() : quiet > 0;
  if (!helps || next.begin >= asked_ + most_ || seconds > seconds_left_) return std::nullopt;
  seconds_left_ -= seconds;
  const std::string cells = std::to_string(next.cells.size());
  if (first) {
    next.note = "Other programs disturbed " + cells +
                (next.cells.size() == 1 ? " cell: it gets" : " cells: they get") +
                " further rounds.";
  }
  return next;
}

}  // namespace attnbench::run
