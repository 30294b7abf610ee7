// The findings of `doctor` as text.
#include <cmath>
#include <iomanip>
#include <map>
#include <optional>
#include <ostream>
#include <sstream>
#include <utility>

#include "core/result/machine.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/measure/condition.hpp"
#include "harness/program/commands/shared/findings.hpp"
#include "harness/program/commands/shared/terminal.hpp"

namespace attnbench::commands {
namespace {

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(share < 0.1 ? 1 : 0) << 100 * share << " %";
  return text.str();
}

/// Texts unquoted, lists separated by blanks.
std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string words;
  for (const Json& item : value) words += (words.empty() ? "" : " ") + shown(item);
  return words;
}

/// The part of the card that LibTorch tells of itself.
struct TorchFacts {
  std::string build;
  std::string onednn_version = "no";
};

ATTNBENCH_JSON_READER(TorchFacts) { JSON_MAYBE(build, onednn_version); }

/// "on one thread: Haswell 95.6 GFLOP/s, SkylakeX 193 GFLOP/s".
std::string tried_text(const result::MachineCard& card) {
  std::string text;
  if (!card.blas || !card.blas->tried) return text;
  for (const auto& [type, rate] : *card.blas->tried) {
    text +=
        (text.empty() ? "on one thread: " : ", ") + type + " " + text::human_count(rate) + "FLOP/s";
  }
  return text;
}

void print_machine(std::ostream& out, const result::MachineCard& card) {
  std::vector<TableRow> rows;
  const Json facts = card;
  for (const char* key : {"host", "os", "kernel", "cpu_model", "cores", "threads", "allowed_cpus",
                          "cpu_quota", "governor", "virtualised", "isa"}) {
    if (facts.contains(key)) rows.push_back({key, " " + shown(facts[key])});
  }
  const auto bytes = [](const std::optional<std::int64_t>& count) {
    return text::human_bytes(static_cast<double>(count.value_or(0)));
  };
  rows.push_back({"memory", " " + bytes(card.memory_bytes)});
  const result::Caches caches = card.caches.value_or(result::Caches{});
  rows.push_back({"caches", " " + bytes(caches.l1_bytes) + " L1, " + bytes(caches.l2_bytes) +
                                " L2, " + bytes(caches.l3_bytes) + " L3"});
  if (const Json* const said = find_value(card.further, "torch")) {
    const auto torch = said->get<TorchFacts>();
    rows.push_back({"libtorch", " " + torch.build});
    rows.push_back({"blas", " " + result::blas_text(card)});
    const std::string tried = tried_text(card);
    if (!tried.empty()) rows.push_back({"", " " + tried});
    rows.push_back({"onednn", " " + torch.onednn_version});
  }
  out << "Machine\n";
  print_columns(out, rows, "  ");
}

void print_worker(std::ostream& out, const WorkerFound& worker) {
  out << "Worker\n";
  if (!worker.works) {
    out << "  cannot work: " << text::bounded_message(worker.reason) << "\n";
    return;
  }
  out << "  starts in " << text::human_seconds(*worker.start_seconds) << "; "
      << Json(*worker.stamp).dump() << "\n";
  for (const PluginSpec& plugin : *worker.plugins) {
    out << "  plugin " << plugin.path << ": " << plugin.status;
    out << (plugin.reason.empty() ? "" : ", " + text::quotable(plugin.reason, 600)) << "\n";
  }
}

std::string number(const std::optional<double>& value, const char* unit) {
  return value ? std::to_string(std::lround(*value)) + " " + unit : "";
}

std::string frequency(const std::optional<double>& hertz) {
  return hertz ? text::human_count(*hertz) + "Hz" : "";
}

/// "NOW of MOST", without what is unknown.
std::string of_most(const std::string& now, const std::string& most) {
  if (most.empty()) return now;
  return (now.empty() ? "at most " : now + " of ") + most;
}

std::string on_or_off(const std::optional<bool>& mode) {
  if (!mode) return "";
  return *mode ? "on" : "off";
}

/// Properties of the card, then its present condition.
void print_card(std::ostream& out, const std::string& word, const DeviceFound& found) {
  const result::DeviceCard card = found.card.value_or(result::DeviceCard{});
  const measure::DeviceCondition condition = found.condition.value_or(measure::DeviceCondition{});
  std::vector<TableRow> rows;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) rows.push_back({name, " " + text});
  };
  add("name", card.name);
  add("compute capability", card.compute_capability);
  if (card.multiprocessors) add("multiprocessors", std::to_string(*card.multiprocessors));
  add("driver", card.driver.empty() ? condition.driver : card.driver);
  add("CUDA of the driver", card.driver_cuda);
  std::string memory = text::human_bytes(static_cast<double>(card.memory_bytes.value_or(0)));
  if (condition.memory_used_bytes) {
    memory +=
        ", " + text::human_bytes(static_cast<double>(*condition.memory_used_bytes)) + " in use";
  }
  add("memory", memory);
  add("L2", card.l2_bytes ? text::human_bytes(static_cast<double>(*card.l2_bytes)) : "");
  add("clock", of_most(frequency(condition.clock_hz), frequency(condition.clock_greatest_hz)));
  add("memory's clock", frequency(condition.clock_memory_hz));
  add("power",
      of_most(number(condition.power_watts, "W"), number(condition.power_limit_watts, "W")));
  add("temperature", number(condition.temperature_celsius, "°C"));
  add("persistence mode", on_or_off(condition.persistence));
  add("ECC", on_or_off(condition.ecc));
  add("MIG", on_or_off(condition.mig));
  if (!condition.refusal.empty()) add("what it does now", "not known: " + condition.refusal);
  out << "  " << word << "\n";
  print_columns(out, rows, "    ");
}

void print_devices(std::ostream& out, const std::map<std::string, DeviceFound>& devices) {
  if (devices.empty()) return;
  out << "Devices\n";
  for (const auto& [word, found] : devices) {
    if (found.refusal.empty()) {
      print_card(out, word, found);
    } else {
      out << "  " << word << "  cannot be used: " << found.refusal << "\n";
    }
  }
}

/// "fma_float32_flops_per_second" as name, rate and unit.
TableRow ceiling_row(const std::string& key, double rate) {
  for (const auto& [ending, unit] :
       {std::pair<std::string, std::string>{"_flops_per_second", "FLOP/s"},
        {"_bytes_per_second", "B/s"},
        {"_per_second", "/s"},
        {"_hz", "Hz"}}) {
    if (key.size() <= ending.size() || key.substr(key.size() - ending.size()) != ending) continue;
    return {key.substr(0, key.size() - ending.size()), text::human_count(rate) + unit};
  }
  return {};
}

void print_ceilings(std::ostream& out, const std::string& word, const Values& ceilings) {
  if (const Json* const refusal = find_value(ceilings, "refusal")) {
    out << "Ceilings of " << word << "\n  not measured: " << shown(*refusal) << "\n";
    return;
  }
  std::vector<TableRow> rows;
  for (const auto& [key, value] : ceilings) {
    if (!value.is_number()) continue;
    if (TableRow row = ceiling_row(key, value.get<double>()); !row.empty()) rows.push_back(row);
  }
  out << "Ceilings of " << word;
  if (const Json* const threads = find_value(ceilings, "threads")) {
    const Json* const isa = find_value(ceilings, "isa");
    out << " (" << *threads << " threads, " << (isa == nullptr ? "" : shown(*isa)) << ")";
  }
  out << "\n";
  print_columns(out, rows, "  ");
  const result::ProductShares shares = result::product_shares(ceilings);
  if (!shares.all_threads) return;
  out << "  gemm_float32 reaches " << percent(*shares.all_threads) << " of fma_float32";
  if (shares.one_thread) out << ", on one thread " << percent(*shares.one_thread);
  out << "\n";
}

void print_measured(std::ostream& out, const DoctorFound& found) {
  for (const auto& [word, ceilings] : found.ceilings) print_ceilings(out, word, ceilings);
  if (!found.noise) return;
  out << "Noise\n  the same work, " << text::human_seconds(found.noise->median_seconds)
      << " each: 80 % of it within " << percent(found.noise->spread)
      << "; two interleaved halves differ by " << percent(found.noise->difference) << "\n";
}

void print_places(std::ostream& out, const std::map<std::string, std::string>& places) {
  std::vector<TableRow> rows;
  for (const auto& [name, path] : places) rows.push_back({name, path});
  out << "Places\n";
  print_columns(out, rows, "  ");
}

}  // namespace

ATTNBENCH_JSON_WRITER(WorkerFound) {
  JSON_USUAL(works);
  JSON_MAYBE(reason, start_seconds, stamp, plugins);
}

ATTNBENCH_JSON_WRITER(DeviceFound) { JSON_MAYBE(card, condition, refusal); }

ATTNBENCH_JSON_WRITER(NoiseFound) { JSON_AT(median_seconds, spread, difference); }

ATTNBENCH_JSON_WRITER(DoctorFound) {
  JSON_AT(machine, worker, devices, places);
  JSON_MAYBE(ceilings, noise);
}

void print_doctor(std::ostream& out, const DoctorFound& found) {
  print_machine(out, found.machine);
  print_worker(out, found.worker);
  print_devices(out, found.devices);
  print_measured(out, found);
  print_places(out, found.places);
  const std::vector<std::string>& sentences = found.machine.noise();
  out << (sentences.empty() ? "Nothing known disturbs measurements.\n"
                            : "What would disturb measurements now\n");
  for (const std::string& sentence : sentences) out << "  - " << sentence << "\n";
}

}  // namespace attnbench::commands
