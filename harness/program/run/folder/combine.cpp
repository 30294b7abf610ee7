#include "harness/program/run/folder/combine.hpp"

#include <algorithm>
#include <cmath>
#include <map>

#include "core/claims_json.hpp"
#include "core/result/document.hpp"
#include "core/result/result_check.hpp"
#include "core/sizes.hpp"
#include "core/statistics.hpp"
#include "harness/program/run/folder/disturbance.hpp"
#include "harness/program/run/folder/timing.hpp"

namespace attnbench::run {
namespace {

Values values_of(const Json& object) { return object.get_ref<const Values&>(); }

/// Sizes that a setting of 0 left to be derived, from the problem they became.
void fill_derived(result::CellRecord& record) {
  for (auto& [name, value] : record.settings) {
    if (value != 0) continue;
    if (const Json* const size = find_value(record.problem, name)) value = *size;
    const Json* const heads = find_value(record.problem, "heads");
    const Json* const head_dim = find_value(record.problem, "head_dim");
    if (heads == nullptr || head_dim == nullptr) continue;
    if (name == "key_dim") value = *head_dim;  // a problem's head_dim is that of queries and keys
    if (name != "width" && name != "head_dim") continue;
    const Json* const width = find_value(record.problem, "model_width");
    Sizes sizes;
    sizes.add("width", width != nullptr ? width->get<std::int64_t>() : 0);
    sizes.add("heads", heads->get<std::int64_t>());
    sizes.add("head_dim", width != nullptr ? 0 : head_dim->get<std::int64_t>());
    value = sizes.value(name);
  }
}

/// The first round that did not end well speaks for the cell.
void add_status(result::CellRecord& record, const std::vector<result::RoundRecord>& rounds) {
  if (rounds.empty()) return;
  record.status = Status::ok;
  record.reason.clear();
  const auto failed = std::find_if(rounds.begin(), rounds.end(),
                                   [](const result::RoundRecord& round) { return !round.ok(); });
  if (failed == rounds.end()) return;
  record.status = failed->status;
  record.reason = failed->reason;
  if (failed->detail != "") record.detail = failed->detail;
}

/// Takes each section from the first round that has it (the chosen implementation from the last),
/// and the first check that did not pass. Memory and training are measured in round 0 only.
void add_measured(result::CellRecord& record, const std::vector<result::RoundRecord>& rounds,
                  double usual_calibration) {
  for (const result::RoundRecord& round : rounds) {
    const result::Measured& measured = round.measured;
    if (record.memory.empty()) record.memory = measured.memory;
    if (record.device_memory.empty()) record.device_memory = measured.device_memory;
    const bool passed = !record.check || record.check->verdict == "ok";
    if (measured.check && passed && (!record.check || measured.check->verdict != "ok")) {
      record.check = measured.check;
    }
    if (!record.training) record.training = measured.training;
    if (measured.chosen) record.chosen = measured.chosen;
    const Json* const python = find_value(measured.further, "python");
    if (python != nullptr && record.further.count("python") == 0) {
      record.further["python"] = *python;
    }
    if (disturbed_training(measured)) record.training->disturbed = true;
  }
  record.metrics = metrics_over(rounds, usual_calibration);
  if (result::is_ok(record) && record.check && record.check->verdict == "wrong") {
    record.status = Status::wrong;
    record.reason = record.check->reason.empty()
                        ? "its values differ from the reference by more than the tolerance"
                        : record.check->reason;
  }
}

/// Marks an ok cell as disturbed; any other status says more, and stays.
void add_disturbance(result::CellRecord& record, const std::string& reason) {
  if (reason.empty() || !result::is_ok(record)) return;
  record.status = Status::disturbed;
  record.reason = reason;
}

/// A search has no length of its own, and its metrics are the crossover's.
void add_crossover(result::CellRecord& record, const std::vector<result::RoundRecord>& rounds) {
  std::vector<result::CrossoverRound> all;
  std::vector<result::CrossoverRound> counted;
  for (const result::RoundRecord& round : rounds) {
    if (!round.ok() || !round.measured.crossover) continue;
    all.push_back(*round.measured.crossover);
    if (!result::is_disturbed(all.back())) counted.push_back(all.back());
  }
  if (all.empty()) return;
  add_disturbance(record, search_disturbance(all.size() - counted.size(), all.size()));
  record.crossover =
      result::crossover_over(enough_rounds(counted.size(), all.size()) ? counted : all);
  record.metrics = result::crossover_metrics(*record.crossover);
  if (!record.chosen) record.chosen.emplace();
  record.chosen->implementation = record.crossover->implementation;
  for (const char* length : {"length", "key_length"}) record.problem.erase(length);
}

std::string primary_of(const result::CellRecord& record) {
  const Json* const pass = find_value(record.settings, "pass");
  if (pass != nullptr && pass->is_string() && record.timing.contains(pass->get<std::string>())) {
    return pass->get<std::string>();
  }
  return record.timing.contains("step") ? "step" : record.timing.begin()->first;
}

void add_roofline(result::CellRecord& record, const Values& ceilings) {
  if (!record.cost || ceilings.empty()) return;
  const auto found = measure::roofline(work_of(record), ceilings);
  if (!found) return;
  record.roofline = result::Roofline{
      found->floor_seconds, found->floor_seconds / result::timing_of(record)->median_seconds,
      found->bound};
}

/// A time below the floor of its own work cannot be right. Shares stay, so that the page shows by
/// how much.
void refuse_impossible(result::CellRecord& record, const Values& ceilings) {
  if (!result::is_ok(record) || !record.cost) return;
  const result::Timing& timing = *result::timing_of(record);
  std::vector<double> calibrations;
  for (const result::TimingRound& round : timing.rounds) {
    const double calibration = round.calibration_seconds.value_or(0);
    if (calibration > 0) calibrations.push_back(calibration);
  }
  measure::Timed timed;
  timed.seconds = timing.median_seconds;
  if (!calibrations.empty()) timed.calibration_seconds = median(calibrations);
  const auto reason = measure::impossible(work_of(record), ceilings, timed);
  if (!reason) return;
  record.status = Status::wrong;
  record.reason = *reason;
  record.timing.clear();
  record.primary.clear();
  record.metrics.clear();
}

}  // namespace

measure::BodyWork work_of(const result::CellRecord& record) {
  measure::BodyWork work;
  const Cost& cost = *record.cost;
  work.flops =
      std::isfinite(cost.model_flops) ? cost.model_flops : known_or_zero(cost.executed_flops);
  work.bytes = known_or_zero(cost.minimal_bytes);
  work.exponentials = known_or_zero(cost.exponentials);
  if (const Json* const dtype = find_value(record.problem, "dtype")) work.dtype = *dtype;
  return work;
}

result::CellRecord planned_record(const Cell& cell, const Forecast& forecast) {
  result::CellRecord record;
  record.id = cell.id;
  record.label = cell.label;
  record.task = cell.task;
  record.task_label = cell.task_label;
  record.mechanism = cell.mechanism;
  record.implementation = cell.implementation;
  record.device = cell.device;
  record.options = values_of(to_json(forecast.options.value_or(cell.options)));
  record.settings = values_of(to_json(cell.settings));
  record.varies = cell.varies;
  if (forecast.problem) {
    record.problem = values_of(Json(*forecast.problem));
    record.cost = forecast.cost;
    record.growth = values_of(Json(forecast.growth));
    if (!forecast.implementation.empty()) {
      record.chosen = result::Chosen{forecast.implementation, forecast.implementation_reason};
    }
  }
  record.status = forecast.supported ? Status::skipped : Status::unsupported;
  record.reason = forecast.supported ? not_reached : forecast.reason;
  return record;
}

result::CellRecord combine(result::CellRecord planned, std::vector<result::RoundRecord> rounds,
                           const Values& ceilings, double usual_calibration) {
  std::stable_sort(
      rounds.begin(), rounds.end(),
      [](const result::RoundRecord& a, const result::RoundRecord& b) { return a.round < b.round; });
  result::CellRecord record = std::move(planned);
  fill_derived(record);
  add_status(record, rounds);
  add_measured(record, rounds, usual_calibration);
  if (record.status == Status::wrong) return record;  // a wrong cell has no time
  add_crossover(record, rounds);
  record.timing = timing_over(rounds, usual_calibration);
  if (record.timing.empty()) return record;
  add_disturbance(record, disturbance(record.timing));
  record.primary = primary_of(record);
  add_roofline(record, ceilings);
  refuse_impossible(record, ceilings);
  return record;
}

std::string joined_fault(const result::CellRecord& planned, const result::RoundRecord& record) {
  try {
    result::Result result;
    result.cells = {combine(planned, {record}, {})};
    return result::result_fault(result::assemble(std::move(result), "attnbench"));
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace attnbench::run
