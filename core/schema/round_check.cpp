#include "core/schema/round_check.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "core/statistics.hpp"
#include "core/result/document.hpp"
#include "core/schema/result_check.hpp"
#include "core/result/record.hpp"

namespace attnbench::result {
namespace {

constexpr int deepest = 32;
constexpr std::size_t longest_key = 200;
constexpr std::size_t most_members = 1000;  ///< of an object: names, not numbers
constexpr std::size_t longest_text = 100'000;
constexpr double rounding = 1e-9;

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::string found(const Json& value) {
  if (value.is_null()) return "nothing, or a number that is not finite";
  std::string text = value.is_structured()
                         ? std::string("an ") + value.type_name()
                         : value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

[[noreturn]] void fail(const std::string& place, const std::string& expected, const Json& value) {
  throw Fault(place + ": expected " + expected + ", found " + found(value));
}

/// A place below `place`; keys of plugins are cut where they are long.
std::string below(const std::string& place, const std::string& key) {
  return (place.empty() ? "" : place + ".") + key.substr(0, 60);
}

const Json& part(const Json& object, const std::string& place, const char* key) {
  static const Json nothing;
  const auto held = object.find(key);
  if (held == object.end()) fail(below(place, key), "a value", nothing);
  return *held;
}

void expect_object(const Json& value, const std::string& place) {
  if (!value.is_object()) fail(place, "an object", value);
}

double positive(const Json& value, const std::string& place) {
  const bool ok =
      value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() > 0;
  if (!ok) fail(place, "a positive number", value);
  return value.get<double>();
}

double not_negative(const Json& value, const std::string& place) {
  const bool ok =
      value.is_number() && std::isfinite(value.get<double>()) && value.get<double>() >= 0;
  if (!ok) fail(place, "a number of at least 0", value);
  return value.get<double>();
}

void expect_texts(const Json& object, const std::string& place,
                  std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto held = object.find(key);
    if (held != object.end() && !held->is_string()) fail(below(place, key), "a text", *held);
  }
}

void expect_objects(const Json& object, const std::string& place,
                    std::initializer_list<const char*> keys) {
  for (const char* key : keys) {
    const auto held = object.find(key);
    if (held != object.end()) expect_object(*held, below(place, key));
  }
}

/// Bounded and without null, whatever it is.
void expect_bounded(const Json& value, const std::string& place, int depth = 0) {
  if (depth > deepest) throw Fault(place.substr(0, 200) + ": nested too deep");
  if (value.is_null()) fail(place, "a value", value);
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    throw Fault(place + ": not a finite number");
  }
  if (value.is_string() && value.get_ref<const std::string&>().size() > longest_text) {
    throw Fault(place + ": a text of more than " + std::to_string(longest_text) + " bytes");
  }
  if (value.is_object()) {
    if (value.size() > most_members) {
      throw Fault(place + ": more than " + std::to_string(most_members) + " members");
    }
    for (const auto& [key, member] : value.items()) {
      if (key.size() > longest_key) {
        throw Fault(below(place, key) + ": a name of more than " + std::to_string(longest_key) +
                    " bytes");
      }
      expect_bounded(member, below(place, key), depth + 1);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      if (value[i].is_number() && !value[i].is_number_float()) continue;
      expect_bounded(value[i], place + "." + std::to_string(i), depth + 1);
    }
  }
}

Status expect_status(const Json& object, const std::string& place) {
  const Json& word = part(object, place, "status");
  const auto status = word.is_string() ? status_from(word.get<std::string>()) : std::nullopt;
  if (!status) fail(below(place, "status"), "a status such as ok, wrong or error", word);
  return *status;
}

std::vector<double> samples_of(const Json& timing, const std::string& place) {
  const Json& samples = timing["samples_seconds"];
  const std::string where = below(place, "samples_seconds");
  if (!samples.is_array() || samples.empty()) fail(where, "a list of numbers", samples);
  std::vector<double> seconds;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    seconds.push_back(positive(samples[i], where + "." + std::to_string(i)));
  }
  return seconds;
}

/// Those of samples that were not taken from the process by others.
std::vector<double> undisturbed(const Json& timing, const std::string& place,
                                const std::vector<double>& samples) {
  const auto preempted = timing.find("preempted");
  if (preempted == timing.end()) return samples;
  const std::string where = below(place, "preempted");
  if (!preempted->is_array()) fail(where, "a list of places in samples_seconds", *preempted);
  std::vector<bool> left_out(samples.size());
  for (const Json& index : *preempted) {
    if (!index.is_number_integer() || index < 0 || index >= samples.size()) {
      fail(where, "places in samples_seconds", index);
    }
    left_out[index.get<std::size_t>()] = true;
  }
  std::vector<double> kept;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    if (!left_out[i]) kept.push_back(samples[i]);
  }
  return kept;
}

bool same(double a, double b) { return std::fabs(a - b) <= rounding * std::fabs(b); }

void expect_timing(const Json& timing, const std::string& place) {
  expect_object(timing, place);
  const double median =
      positive(part(timing, place, "median_seconds"), below(place, "median_seconds"));
  if (timing.contains("samples_seconds")) {
    const std::vector<double> samples = samples_of(timing, place);
    const std::vector<double> kept = undisturbed(timing, place, samples);
    if (!same(median, measure::median(samples)) &&
        (kept.empty() || !same(median, measure::median(kept)))) {
      throw Fault(below(place, "median_seconds") + ": " + Json(median).dump() +
                  " is not the median of its samples, " + Json(measure::median(samples)).dump());
    }
    for (const char* each : {"samples_cpu_share", "samples_switches"}) {
      const auto beside = timing.find(each);
      if (beside == timing.end()) continue;
      if (!beside->is_array() || beside->size() != samples.size()) {
        fail(below(place, each), "a number for each sample", *beside);
      }
      for (const Json& number : *beside) not_negative(number, below(place, each));
    }
  }
  for (const char* end : {"low_seconds", "high_seconds"}) {
    const auto held = timing.find(end);
    if (held == timing.end()) continue;
    const double bound = positive(*held, below(place, end));
    const bool low = end[0] == 'l';
    if (low ? bound > median * (1 + rounding) : bound < median * (1 - rounding)) {
      fail(below(place, end), low ? "at most the median" : "at least the median", *held);
    }
  }
  const auto disturbed = timing.find("disturbed");
  if (disturbed != timing.end() && !disturbed->is_boolean()) {
    fail(below(place, "disturbed"), "true or false", *disturbed);
  }
  if (timing.contains("calibration_seconds")) {
    not_negative(timing["calibration_seconds"], below(place, "calibration_seconds"));
  }
  expect_texts(timing, place, {"stop", "graph_reason"});
}

/// What the rounds of a search are joined by.
void expect_crossover(const Json& crossover) {
  const std::string place = "measured.crossover";
  for (const char* key : {"verdict", "implementation", "against"}) part(crossover, place, key);
  expect_texts(crossover, place, {"verdict", "implementation", "against", "stopped"});
  for (const char* key : {"length_minimum", "length_maximum"}) {
    positive(part(crossover, place, key), below(place, key));
  }
  for (const char* key : {"low", "high"}) {
    if (crossover.contains(key)) positive(crossover[key], below(place, key));
  }
  for (const char* key : {"crossings", "lengths"}) {
    if (crossover.contains(key) && !crossover[key].is_array()) {
      fail(below(place, key), "a list", crossover[key]);
    }
  }
}

void expect_measured(const Json& measured) {
  const std::string place = "measured";
  expect_object(measured, place);
  expect_bounded(measured, place);
  expect_objects(
      measured, place,
      {"timing", "memory", "device_memory", "check", "metrics", "chosen", "training", "crossover"});
  if (measured.contains("timing")) {
    for (const auto& [what, timing] : measured["timing"].items()) {
      expect_timing(timing, below(place + ".timing", what));
    }
  }
  if (measured.contains("calibration_seconds")) {
    not_negative(measured["calibration_seconds"], "measured.calibration_seconds");
  }
  for (const char* section : {"memory", "device_memory"}) {
    if (!measured.contains(section)) continue;
    for (const auto& [key, bytes] : measured[section].items()) {
      not_negative(bytes, below(below(place, section), key));
    }
  }
  if (measured.contains("metrics")) {
    for (const auto& [key, value] : measured["metrics"].items()) {
      if (!value.is_number()) fail(below("measured.metrics", key), "a number", value);
    }
  }
  if (measured.contains("check")) {
    const Json& verdict = part(measured["check"], "measured.check", "verdict");
    if (verdict != "ok" && verdict != "wrong")
      fail("measured.check.verdict", "ok or wrong", verdict);
    expect_texts(measured["check"], "measured.check", {"reason", "reference", "dtype"});
  }
  if (measured.contains("crossover")) expect_crossover(measured["crossover"]);
  if (measured.contains("chosen")) {
    expect_texts(measured["chosen"], "measured.chosen", {"implementation", "reason"});
  }
}

void expect_record(const Json& record) {
  expect_object(record, "the record");
  expect_bounded(record, "");
  const Json& cell = part(record, "", "cell");
  if (!cell.is_string() || cell.get_ref<const std::string&>().empty()) fail("cell", "an id", cell);
  const Json& round = part(record, "", "round");
  if (!round.is_number_integer() || round < 0 || round > 1'000'000) {
    fail("round", "a whole number of at least 0", round);
  }
  expect_status(record, "");
  expect_texts(record, "", {"reason", "detail", "started_at", "reused_from"});
  expect_objects(record, "", {"side_by_side"});
  if (record.contains("wall_seconds")) not_negative(record["wall_seconds"], "wall_seconds");
  if (record.contains("measured")) expect_measured(record["measured"]);
}

void expect_check(const Json& answer) {
  const Json& properties = part(answer, "", "properties");
  if (!properties.is_array()) fail("properties", "a list", properties);
  for (std::size_t i = 0; i < properties.size(); ++i) {
    const std::string place = "properties." + std::to_string(i);
    expect_object(properties[i], place);
    for (const char* key : {"name", "status"}) part(properties[i], place, key);
    expect_texts(properties[i], place, {"name", "status", "dtype", "reason"});
    const Json& status = properties[i]["status"];
    if (status != "held" && status != "broken" && status != "not_applicable") {
      fail(below(place, "status"), "held, broken or not_applicable", status);
    }
    for (const char* key : {"error", "tolerance"}) {
      if (properties[i].contains(key)) not_negative(properties[i][key], below(place, key));
    }
  }
}

void expect_applied(const Json& answer, Status status) {
  if (status != Status::ok && status != Status::wrong) return;
  for (const char* key : {"implementation", "implementation_reason", "options", "problem", "roles",
                          "parameters", "files", "stamp"}) {
    part(answer, "", key);
  }
  expect_texts(answer, "", {"implementation", "implementation_reason"});
  expect_objects(answer, "", {"options", "problem", "roles", "parameters", "stamp", "check"});
  if (!answer["files"].is_array()) fail("files", "a list", answer["files"]);
  for (const Json& file : answer["files"]) {
    if (!file.is_string()) fail("files", "names", file);
  }
}

void expect_data(const Json& answer, Status status) {
  if (status != Status::ok) return;
  const Json& files = part(answer, "", "files");
  if (!files.is_array()) fail("files", "a list", files);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::string place = "files." + std::to_string(i);
    expect_object(files[i], place);
    if (!part(files[i], place, "file").is_string()) fail(below(place, "file"), "a name", files[i]);
    not_negative(part(files[i], place, "examples"), below(place, "examples"));
  }
}

void expect_probe(const Json& answer) {
  expect_object(part(answer, "", "machine"), "machine");
  if (answer.contains("product")) {  // one matrix product, where ceilings were not asked for
    expect_object(answer["product"], "product");
    positive(part(answer["product"], "product", "flops_per_second"), "product.flops_per_second");
    return;
  }
  expect_object(part(answer, "", "ceilings"), "ceilings");
  for (const auto& [key, rate] : answer["ceilings"].items()) {
    if (rate.is_number()) positive(rate, below("ceilings", key));
  }
}

void expect_forecast(const Json& forecast) {
  const Json& supported = part(forecast, "", "supported");
  if (!supported.is_boolean()) fail("supported", "true or false", supported);
  if (forecast.contains("status")) expect_status(forecast, "");
  expect_texts(forecast, "", {"reason", "detail", "implementation", "implementation_reason"});
  expect_objects(forecast, "", {"cost", "growth", "options", "problem"});
  for (const char* section : {"cost", "growth"}) {
    if (!forecast.contains(section)) continue;
    for (const auto& [key, value] : forecast[section].items()) {
      if (!value.is_number()) fail(below(section, key), "a number", value);
    }
  }
  if (forecast.contains("peak_bytes")) not_negative(forecast["peak_bytes"], "peak_bytes");
}

void expect_answer(const std::string& request, const Json& answer) {
  expect_object(answer, "the answer");
  expect_bounded(answer, "");
  if (request == "probe") return expect_probe(answer);
  if (request == "forecast") return expect_forecast(answer);
  const Status status = expect_status(answer, "");
  expect_texts(answer, "", {"reason", "detail"});
  if (request == "run" && answer.contains("measured")) expect_measured(answer["measured"]);
  if (request == "check") expect_check(answer);
  if (request == "apply") expect_applied(answer, status);
  if (request == "data") expect_data(answer, status);
}

template <class Expect>
std::string fault_of(const Expect& expect) {
  try {
    expect();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

std::string round_fault(const Json& record) {
  return fault_of([&] { expect_record(record); });
}

std::string answer_fault(const std::string& request, const Json& answer) {
  return fault_of([&] { expect_answer(request, answer); });
}

std::string joined_fault(const Json& cell, const Json& forecast, const Json& record) {
  return fault_of([&] {
    expect_record(record);  // joining relies on it
    Parts parts;
    parts.cells = {combine(cell, forecast, {record}, Json::object())};
    check_form(assemble(parts), "the cell that it makes");
  });
}

}  // namespace attnbench::result
