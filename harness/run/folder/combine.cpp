#include "harness/run/folder/combine.hpp"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "core/result/crossover.hpp"
#include "core/result/document.hpp"
#include "core/result/record.hpp"
#include "core/schema/result_check.hpp"
#include "core/sizes.hpp"
#include "core/statistics.hpp"
#include "harness/measure/roofline.hpp"
#include "harness/run/folder/disturbance.hpp"

namespace attnbench::result {
namespace {

/// One WHAT of one cell over its rounds, in the rounds' order.
struct Series {
  std::vector<Json> rounds;
  std::vector<double> medians;
  std::vector<double> calibrations;  ///< as long as medians, or not of use

  void add(Json round) {
    medians.push_back(round.at("median_seconds").get<double>());
    const double calibration = round.value("calibration_seconds", 0.0);
    if (calibration > 0) calibrations.push_back(calibration);
    rounds.push_back(std::move(round));
  }
};

/// Those rounds that count; all of them where too few do.
Series counted_of(const Series& all) {
  Series counted;
  for (const Json& round : all.rounds) {
    if (!round.value("disturbed", false)) counted.add(round);
  }
  return enough_rounds(counted.rounds.size(), all.rounds.size()) ? counted : all;
}

/// Bounds of the median over rounds. Six or more rounds give an order-statistic interval at 95 %;
/// fewer give no such promise and are labelled by what they are: the range of the rounds, or the
/// samples of the only one.
void add_interval(Json& timing, const Series& series) {
  if (series.medians.size() == 1) {
    const Json& only = series.rounds.front();
    timing["low_seconds"] = only.value("low_seconds", series.medians[0]);
    timing["high_seconds"] = only.value("high_seconds", series.medians[0]);
    timing["interval"] = "samples";
    return;
  }
  const auto order = measure::median_interval(series.medians);
  const auto [low, high] = std::minmax_element(series.medians.begin(), series.medians.end());
  timing["low_seconds"] = order ? order->low : *low;
  timing["high_seconds"] = order ? order->high : *high;
  timing["interval"] = order ? "order" : "range";
}

/// A round on a machine that ran slower than the run's median round is scaled down by as much.
void add_calibrated(Json& timing, const Series& series) {
  if (series.calibrations.size() != series.medians.size()) return;
  const double usual = measure::median(series.calibrations);
  std::vector<double> scaled;
  for (std::size_t i = 0; i < series.medians.size(); ++i) {
    scaled.push_back(series.medians[i] * usual / series.calibrations[i]);
  }
  timing["calibrated_median_seconds"] = measure::median(scaled);
  if (scaled.size() < 2) return;
  const auto order = measure::median_interval(scaled);
  timing["calibrated_low_seconds"] =
      order ? order->low : *std::min_element(scaled.begin(), scaled.end());
  timing["calibrated_high_seconds"] =
      order ? order->high : *std::max_element(scaled.begin(), scaled.end());
}

Json timing_of(const Series& all) {
  const Series series = counted_of(all);
  Json timing;
  timing["median_seconds"] = measure::median(series.medians);
  add_interval(timing, series);
  add_calibrated(timing, series);
  double minimum = series.medians.front();
  for (const Json& round : series.rounds) {
    for (const Json& sample : round.value("samples_seconds", Json::array())) {
      minimum = std::min(minimum, sample.get<double>());
    }
  }
  timing["minimum_seconds"] = minimum;
  timing["rounds"] = all.rounds;
  if (!disturbance({{"", timing}}).empty()) timing["disturbed"] = true;
  return timing;
}

/// Every WHAT timed in an ok round; rounds that were disturbed are marked.
Json timing_over(const std::vector<Json>& rounds, double usual_calibration) {
  std::map<std::string, Series> found;
  for (const Json& record : rounds) {
    const Json& measured = record["measured"];
    if (record["status"] != "ok" || !measured.contains("timing")) continue;
    for (const auto& [what, timing] : measured["timing"].items()) {
      Json round = timing;
      round["round"] = record.value("round", 0);
      if (!round.contains("calibration_seconds") && measured.contains("calibration_seconds")) {
        round["calibration_seconds"] = measured["calibration_seconds"];
      }
      if (const std::string cause = disturbed_by(round, usual_calibration); !cause.empty()) {
        round["disturbed"] = true;
        round["disturbed_by"] = cause;
      }
      found[what].add(std::move(round));
    }
  }
  Json result = Json::object();
  for (const auto& [what, series] : found) result[what] = timing_of(series);
  return result;
}

/// Rates are made of a round's times, and as good as those.
bool any_disturbed(const Json& measured, double usual_calibration) {
  if (!measured.contains("timing")) return false;
  const Json& timing = measured["timing"];
  return std::any_of(timing.begin(), timing.end(), [&](const Json& one) {
    return !disturbed_by(one, usual_calibration).empty();
  });
}

/// What a task measured besides: the median where a metric was measured in several rounds, of those
/// that nothing disturbed where there are any, else what the first round said.
Json metrics_over(const std::vector<Json>& rounds, double usual_calibration) {
  Json metrics = Json::object();
  std::map<std::string, std::vector<double>> numbers;
  std::map<std::string, std::vector<double>> undisturbed;
  for (const Json& record : rounds) {
    const Json& measured = record["measured"];
    if (record["status"] != "ok" || !measured.contains("metrics")) continue;
    const bool disturbed = any_disturbed(measured, usual_calibration);
    for (const auto& [name, value] : measured["metrics"].items()) {
      if (!metrics.contains(name)) metrics[name] = value;
      if (!value.is_number_float()) continue;
      numbers[name].push_back(value.get<double>());
      if (!disturbed) undisturbed[name].push_back(value.get<double>());
    }
  }
  for (const auto& [name, values] : numbers) {
    const auto counted = undisturbed.find(name);
    metrics[name] = measure::median(counted == undisturbed.end() ? values : counted->second);
  }
  return metrics;
}

/// Sizes that a setting of 0 left to be derived, from the problem they became.
void fill_derived(Json& record) {
  if (!record.contains("problem")) return;
  const Json& problem = record["problem"];
  for (auto& [name, value] : record["settings"].items()) {
    if (value != 0) continue;
    if (problem.contains(name)) value = problem[name];
    if (name == "width" && problem.contains("heads") && problem.contains("head_dim")) {
      Sizes sizes;
      sizes.add("width", 0);
      for (const char* size : {"heads", "head_dim"}) sizes.add(size, problem[size].get<long>());
      value = sizes.value("width");
    }
  }
}

void add_forecast(Json& record, const Json& forecast) {
  if (!forecast.is_object()) return;
  for (const char* part : {"problem", "cost", "growth"}) {
    if (forecast.contains(part) && !forecast[part].is_null()) record[part] = forecast[part];
  }
  if (forecast.contains("options")) record["options"] = forecast["options"];
  if (forecast.contains("implementation") && forecast["implementation"] != "") {
    record["chosen"] = {{"implementation", forecast["implementation"]},
                        {"reason", forecast.value("implementation_reason", "")}};
  }
  fill_derived(record);
}

/// The first round that did not end well speaks for the cell; without rounds the plan does.
void add_status(Json& record, const Json& forecast, const std::vector<Json>& rounds) {
  record["status"] = "ok";
  for (const Json& round : rounds) {
    if (round["status"] == "ok") continue;
    record["status"] = round["status"];
    for (const char* part : {"reason", "detail"}) {
      if (round.contains(part) && round[part] != "") record[part] = round[part];
    }
    return;
  }
  if (!rounds.empty()) return;
  const bool refused = forecast.is_object() && !forecast.value("supported", true);
  record["status"] = refused ? "unsupported" : "skipped";
  record["reason"] =
      refused ? forecast.value("reason", "") : "the run ended before this cell was measured";
}

/// What the first ok round tells of each part: memory, check and training are made in round 0 only.
void add_measured(Json& record, const std::vector<Json>& rounds, double usual_calibration) {
  for (const Json& round : rounds) {
    for (const char* part : {"memory", "device_memory", "check", "training", "chosen"}) {
      const bool known = record.contains(part) && std::string(part) != "chosen";
      if (!known && round["measured"].contains(part)) record[part] = round["measured"][part];
    }
    if (disturbed_training(round["measured"])) record["training"]["disturbed"] = true;
  }
  const Json metrics = metrics_over(rounds, usual_calibration);
  if (!metrics.empty()) record["metrics"] = metrics;
  if (record["status"] == "ok" && record.contains("check") &&
      record["check"].value("verdict", "ok") == "wrong") {
    record["status"] = "wrong";
    record["reason"] = record["check"].value(
        "reason", "its values differ from the reference by more than the tolerance");
  }
}

/// An undisturbed cell is ok; what else it was already says more.
void add_disturbance(Json& record, const std::string& reason) {
  if (reason.empty() || record["status"] != "ok") return;
  record["status"] = "disturbed";
  record["reason"] = reason;
}

/// A search has no length of its own, and its metrics are the crossover's.
void add_crossover(Json& record, const std::vector<Json>& rounds) {
  std::vector<Json> all;
  std::vector<Json> counted;
  for (const Json& round : rounds) {
    if (round["status"] != "ok" || !round["measured"].contains("crossover")) continue;
    all.push_back(round["measured"]["crossover"]);
    if (!disturbed_search(all.back())) counted.push_back(all.back());
  }
  if (all.empty()) return;
  add_disturbance(record, search_disturbance(all.size() - counted.size(), all.size()));
  const std::vector<Json>& found = enough_rounds(counted.size(), all.size()) ? counted : all;
  record["crossover"] = crossover_over(found);
  record["metrics"] = crossover_metrics(record["crossover"]);
  record["chosen"]["implementation"] = record["crossover"]["implementation"];
  if (!record.contains("problem")) return;
  for (const char* length : {"length", "key_length"}) record["problem"].erase(length);
}

std::string primary_of(const Json& record) {
  const Json& timing = record["timing"];
  const std::string pass = record["settings"].value("pass", "");
  if (timing.contains(pass)) return pass;
  if (timing.contains("step")) return "step";
  return timing.begin().key();
}

measure::Work work_of(const Json& record) {
  const Json& cost = record["cost"];
  measure::Work work;
  work.flops = cost.value("model_flops", cost.value("executed_flops", 0.0));
  work.bytes = cost.value("minimal_bytes", 0.0);
  work.exponentials = cost.value("exponentials", 0.0);
  if (record.contains("problem")) work.dtype = record["problem"].value("dtype", work.dtype);
  return work;
}

void add_roofline(Json& record, const Json& ceilings) {
  if (!record.contains("cost") || !ceilings.is_object() || ceilings.empty()) return;
  const auto found = measure::roofline(work_of(record), ceilings);
  if (!found) return;
  const double median =
      record["timing"][record["primary"].get<std::string>()]["median_seconds"].get<double>();
  record["roofline"] = {{"floor_seconds", found->floor_seconds},
                        {"bound", found->bound},
                        {"share", found->floor_seconds / median}};
}

/// A time below the floor of its own work is no time: it is wrong until explained. Shares stay, so
/// that the page shows by how much.
void refuse_impossible(Json& record, const Json& ceilings) {
  if (record["status"] != "ok" || !record.contains("cost")) return;
  const Json& timing = record["timing"][record["primary"].get<std::string>()];
  std::vector<double> calibrations;
  for (const Json& round : timing.value("rounds", Json::array())) {
    const double calibration = round.value("calibration_seconds", 0.0);
    if (calibration > 0) calibrations.push_back(calibration);
  }
  measure::Timed timed;
  timed.seconds = timing["median_seconds"].get<double>();
  if (!calibrations.empty()) timed.calibration_seconds = measure::median(calibrations);
  const auto reason = measure::impossible(work_of(record), ceilings, timed);
  if (!reason) return;
  record["status"] = "wrong";
  record["reason"] = *reason;
  for (const char* part : {"timing", "primary", "metrics"}) record.erase(part);
}

/// Round records with a `measured` object and a `status`, so that nothing below asks again.
std::vector<Json> completed(std::vector<Json> rounds) {
  for (Json& round : rounds) {
    if (!round.contains("measured") || !round["measured"].is_object()) {
      round["measured"] = Json::object();
    }
    if (!round.contains("status")) round["status"] = "error";
  }
  std::stable_sort(rounds.begin(), rounds.end(), [](const Json& a, const Json& b) {
    return a.value("round", 0) < b.value("round", 0);
  });
  return rounds;
}

}  // namespace

Json combine(const Json& cell, const Json& forecast, const std::vector<Json>& rounds,
             const Json& ceilings, double usual_calibration) {
  const std::vector<Json> records = completed(rounds);
  Json record = cell;
  for (const char* part : {"options", "settings"}) {
    if (!record.contains(part)) record[part] = Json::object();
  }
  add_forecast(record, forecast);
  add_status(record, forecast, records);
  add_measured(record, records, usual_calibration);
  if (record["status"] == "wrong") return record;  // a wrong cell has no time
  add_crossover(record, records);
  Json timing = timing_over(records, usual_calibration);
  if (timing.empty()) return record;
  add_disturbance(record, disturbance(timing));
  record["timing"] = std::move(timing);
  record["primary"] = primary_of(record);
  add_roofline(record, ceilings);
  refuse_impossible(record, ceilings);
  return record;
}

std::string joined_fault(const Json& cell, const Json& forecast, const Json& record) {
  std::string fault = round_fault(record);  // joining relies on it
  if (!fault.empty()) return fault;
  try {
    Parts parts;
    parts.cells = {combine(cell, forecast, {record}, Json::object())};
    return result_fault(assemble(parts));
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace attnbench::result
