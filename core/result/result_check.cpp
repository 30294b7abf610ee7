#include "core/result/result_check.hpp"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "core/failure.hpp"
#include "core/protocol.hpp"
#include "core/result/document.hpp"
#include "core/schema/schema_validator.hpp"
#include "core/statistics.hpp"
#include "core/text/printable.hpp"

namespace attnbench::result {
namespace {

struct Fault : std::runtime_error {
  using std::runtime_error::runtime_error;
};

[[noreturn]] void fail(const std::string& pointer, const std::string& expected,
                       const std::string& found) {
  throw Fault(schema::Misfit{pointer, expected, found}.text());
}

/// Holds `value` to the schema of a struct, compiled once.
template <class Struct>
void expect_form(const Json& value) {
  static const schema::SchemaValidator validator(schema_for<Struct>());
  if (const auto misfit = validator.misfit(value)) throw Fault(misfit->text());
}

// ---- what a schema cannot say
// --------------------------------------------------------------------

/// Lists beside the samples have one number for each; what was preempted is one of them.
void expect_samples(const Json& timing, const std::string& pointer) {
  const std::size_t count = timing.value("samples_seconds", Json::array()).size();
  for (const char* name : {"samples_cpu_share", "samples_switches"}) {
    if (timing.contains(name) && timing[name].size() != count) {
      fail(pointer + "/" + name, "as many numbers as samples_seconds",
           std::to_string(timing[name].size()) + " beside " + std::to_string(count));
    }
  }
  for (const Json& index : timing.value("preempted", Json::array())) {
    if (index >= count) fail(pointer + "/preempted", "indices of samples_seconds", index.dump());
  }
}

/// Lists of the same number of numbers.
void expect_columns(const Json& table, const std::string& pointer,
                    std::initializer_list<const char*> names) {
  const char* first = *names.begin();
  for (const char* name : names) {
    if (table[name].size() == table[first].size()) continue;
    fail(pointer + "/" + name, std::string("as many numbers as ") + first,
         std::to_string(table[name].size()));
  }
}

void expect_numbers(const Json& object, const std::string& pointer,
                    std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (!object.contains(name)) fail(pointer + "/" + name, "a number", "nothing");
    if (!object[name].is_number()) fail(pointer + "/" + name, "a number", found_text(object[name]));
  }
}

void expect_timings(const Json& cell, const std::string& pointer) {
  const Json& timing = cell["timing"];
  for (const auto& [what, one] : timing.items()) {
    const Json& rounds = one["rounds"];
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      expect_samples(rounds[i], pointer + "/timing/" + what + "/rounds/" + std::to_string(i));
    }
  }
  const Json primary = cell.value("primary", Json());
  if (!primary.is_string()) fail(pointer + "/primary", "the name of a timing", "nothing");
  if (cell["status"] == "ok" && timing.empty()) {
    fail(pointer + "/timing", "at least one timing", "none");
  }
  if (!timing.contains(primary)) {
    fail(pointer + "/primary", "the name of a timing", primary.dump());
  }
}

void expect_cell(const Json& cell, const std::string& pointer) {
  if (cell.contains("crossover") && cell["crossover"]["verdict"] == "found") {
    expect_numbers(cell["crossover"], pointer + "/crossover", {"length"});
  }
  if (cell.contains("training")) {
    const Json& training = cell["training"];
    const std::string place = pointer + "/training";
    if (training.contains("look_back")) {
      expect_columns(training["look_back"], place + "/look_back",
                     {"distances", "questions", "right"});
    }
    if (training.contains("reach_line")) {
      expect_columns(training["reach_line"], place + "/reach_line",
                     {"keys", "state_bytes", "reach"});
    }
    if (training.contains("latent_probabilities")) {
      expect_columns(training["latent_probabilities"], place + "/latent_probabilities",
                     {"tokens", "probabilities"});
    }
    if (!cell.contains("metrics")) fail(pointer + "/metrics", "an object", "nothing");
    expect_numbers(cell["metrics"], pointer + "/metrics",
                   {"accuracy", "validation_accuracy", "train_accuracy"});
    if (training.contains("judged_by")) {
      if (training["judged_by"] == "perplexity") {
        expect_numbers(cell["metrics"], pointer + "/metrics",
                       {"perplexity", "validation_perplexity"});
      } else {
        expect_numbers(cell["metrics"], pointer + "/metrics",
                       {"bits_per_byte", "validation_bits_per_byte"});
      }
    }
    expect_numbers(cell["settings"], pointer + "/settings", {"learning_rate"});
  }
  if (cell.contains("timing")) expect_timings(cell, pointer);
}

void expect_result(const Json& result) {
  expect_form<Result>(result);
  const Json& cells = result["attnbench"]["cells"];
  for (std::size_t i = 0; i < cells.size(); ++i) {
    expect_cell(cells[i], "/attnbench/cells/" + std::to_string(i));
  }
}

/// Small, of finite numbers and without null, whatever it is.
void expect_bounded(const Json& value, const Json::json_pointer& pointer, int depth = 0) {
  constexpr int deepest = 32;
  constexpr std::size_t longest_key = 200;
  constexpr std::size_t max_members = 1000;  // of an object: names, not numbers
  constexpr std::size_t longest_text = 100'000;
  const auto refuse = [&](const std::string& what) {
    throw Fault((pointer.empty() ? "/" : text::quotable(pointer.to_string())) + ": " + what);
  };
  if (depth > deepest) refuse("nested too deep");
  if (value.is_null()) refuse("expected a value, found " + found_text(value));
  if (value.is_number_float() && !std::isfinite(value.get<double>())) {
    refuse("not a finite number");
  }
  if (value.is_string() && value.get_ref<const std::string&>().size() > longest_text) {
    refuse("a text of more than " + std::to_string(longest_text) + " bytes");
  }
  if (value.is_object()) {
    if (value.size() > max_members) {
      refuse("more than " + std::to_string(max_members) + " members");
    }
    for (const auto& [key, member] : value.items()) {
      if (key.size() > longest_key) {
        refuse("a name of more than " + std::to_string(longest_key) + " bytes");
      }
      expect_bounded(member, pointer / key, depth + 1);
    }
  } else if (value.is_array()) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      const Json& item = value[i];
      const bool good =
          item.is_number() && (!item.is_number_float() || std::isfinite(item.get<double>()));
      if (!good) expect_bounded(item, pointer / i, depth + 1);
    }
  }
}

bool same(double a, double b) {
  constexpr double rounding = 1e-9;
  return std::abs(a - b) <= rounding * std::max(std::abs(a), std::abs(b));
}

/// The median is that of the samples, or of those that were not preempted; it lies between its
/// bounds.
void expect_median(const Json& timing, const std::string& pointer) {
  const double median = timing["median_seconds"].get<double>();
  if (timing.contains("samples_seconds")) {
    const auto samples = timing["samples_seconds"].get<std::vector<double>>();
    std::vector<bool> left_out(samples.size());
    for (const Json& index : timing.value("preempted", Json::array())) {
      left_out[index.get<std::size_t>()] = true;
    }
    std::vector<double> kept;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (!left_out[i]) kept.push_back(samples[i]);
    }
    if (!same(median, attnbench::median(samples)) &&
        (kept.empty() || !same(median, attnbench::median(kept)))) {
      throw Fault(pointer + "/median_seconds: " + Json(median).dump() +
                  " is not the median of its samples, " + Json(attnbench::median(samples)).dump());
    }
  }
  const double low = timing.value("low_seconds", median);
  const double high = timing.value("high_seconds", median);
  if (low > median && !same(low, median)) {
    fail(pointer + "/low_seconds", "at most the median", Json(low).dump());
  }
  if (high < median && !same(high, median)) {
    fail(pointer + "/high_seconds", "at least the median", Json(high).dump());
  }
}

void expect_measured(const Json& of) {
  if (!of.contains("measured")) return;
  const Json timings = of["measured"].value("timing", Json::object());
  for (const auto& [what, timing] : timings.items()) {
    const std::string pointer = "/measured/timing/" + what;
    expect_samples(timing, pointer);
    expect_median(timing, pointer);
  }
}

void expect_positive(const Json& rate, const std::string& pointer) {
  if (rate.is_number() && rate <= 0) fail(pointer, "a positive number", rate.dump());
}

/// The ceilings of a device, or the rate of one product, beside the machine card.
void expect_probe(const Json& answer) {
  Values machine;
  std::optional<protocol::Product> product;
  Values ceilings;
  JsonReader reader(answer);
  reader.at("machine", machine);
  reader.maybe("product", product);
  if (product) return expect_positive(product->flops_per_second, "/product/flops_per_second");
  reader.at("ceilings", ceilings);
  for (const auto& [name, rate] : ceilings) expect_positive(rate, "/ceilings/" + name);
}

void expect_forecast(const Forecast& forecast) {
  const double least =
      std::min(forecast.peak_bytes.value_or(0), static_cast<double>(forecast.calls.value_or(0)));
  if (least < 0) fail("/peak_bytes", "a number of at least 0", Json(least).dump());
}

/// Reads it, as the supervisor will.
void expect_answer(const std::string& request, const Json& answer) {
  if (request == "forecast") {
    expect_forecast(answer.get<Forecast>());
  } else if (request == "probe") {
    expect_probe(answer);
  } else if (request == "check") {
    static_cast<void>(answer.get<protocol::CheckAnswer>());
  } else if (request == "apply") {
    static_cast<void>(answer.get<protocol::ApplyAnswer>());
  } else if (request == "data") {
    static_cast<void>(answer.get<protocol::DataAnswer>());
  } else {
    static_cast<void>(answer.get<protocol::GenerateAnswer>());
  }
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

std::string result_fault(const Json& result) {
  return fault_of([&] { expect_result(result); });
}

void check_form(const Json& result, const std::string& file) {
  const std::string fault = result_fault(result);
  if (!fault.empty()) refuse_form(fault, file);
}

void refuse_form(const std::string& fault, const std::string& file) {
  throw UsageFailure(text::quotable(file) + ": " + text::quotable(fault, 600) +
                     "; is it a result.json that attnbench wrote?");
}

std::string round_fault(const Json& record) {
  return fault_of([&] {
    expect_bounded(record, Json::json_pointer());
    expect_form<RoundRecord>(record);
    expect_measured(record);
  });
}

std::string answer_fault(const std::string& request, const Json& answer) {
  return fault_of([&] {
    expect_bounded(answer, Json::json_pointer());
    expect_answer(request, answer);
  });
}

std::string result_schema_text() { return schema_for<Result>().dump(2) + "\n"; }

}  // namespace attnbench::result
