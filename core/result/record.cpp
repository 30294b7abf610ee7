#include "core/result/record.hpp"

#include <algorithm>

#include "core/claims_json.hpp"

namespace attnbench::result {

ATTNBENCH_JSON_CODEC(TimingRound) {
  JSON_USUAL(median_seconds);
  JSON_MAYBE(round, low_seconds, high_seconds, samples_seconds, stop, samples_cpu_share,
             samples_switches, preempted, lost_share, stolen_share, others_share,
             own_threads_waited, clock_ratio, graph, graph_reason, disturbed, disturbed_by,
             calibration_seconds);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Timing) {
  JSON_USUAL(median_seconds, low_seconds, high_seconds, rounds);
  JSON_MAYBE(interval, minimum_seconds, calibrated_median_seconds, calibrated_low_seconds,
             calibrated_high_seconds, disturbed);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Chosen) {
  JSON_USUAL(implementation);
  JSON_MAYBE(reason);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(Check) {
  JSON_MAYBE(verdict, reason);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(Roofline) {
  JSON_USUAL(floor_seconds, share, bound);
  JSON_IGNORE_REST;
}

ATTNBENCH_JSON_CODEC(CellRecord) {
  JSON_USUAL(id, label, task, mechanism, options, settings, status);
  JSON_MAYBE(task_label, implementation, device, problem, varies, reason, detail, reproduce,
             waiting, reused_from, side_by_side, chosen, cost, growth, timing, primary, crossover,
             training, check, roofline, memory, device_memory, metrics);
  JSON_REST;
}

std::size_t Timing::disturbed_rounds() const {
  return static_cast<std::size_t>(std::count_if(
      rounds.begin(), rounds.end(), [](const TimingRound& round) { return round.disturbed; }));
}

bool is_ok(const CellRecord& cell) { return cell.status == Status::ok; }

bool is_disturbed(const CellRecord& cell) { return cell.status == Status::disturbed; }

bool is_unchecked(const CellRecord& cell) {
  return cell.status == Status::error && cell.check && cell.check->verdict == "unchecked";
}

const Timing* timing_of(const CellRecord& cell, const std::string& what) {
  const auto found = cell.timing.find(what.empty() ? cell.primary : what);
  return found == cell.timing.end() ? nullptr : &found->second;
}

std::string preempted_words(std::size_t disturbed, std::size_t rounds) {
  return std::to_string(disturbed) + " of " + std::to_string(rounds) +
         (rounds == 1 ? " round was" : " rounds were") + " preempted: repeat on a quiet machine";
}

const char* const disturbed_note =
    "disturbed: other programs had the CPU, of such a time the least sample is shown and nothing "
    "is "
    "ranked; `--retry disturbed` measures it again";

ATTNBENCH_JSON_CODEC(Measured) {
  JSON_MAYBE(timing, crossover, training, check, chosen, memory, device_memory, metrics,
             calibration_seconds, lost_share);
  JSON_REST;
}

ATTNBENCH_JSON_CODEC(RoundRecord) {
  json.type("record");
  JSON_USUAL(cell, round, status, measured);
  JSON_MAYBE(reason, detail, started_at, wall_seconds, reused_from, side_by_side, waiting);
  JSON_REST;
}

}  // namespace attnbench::result
