#include "harness/commands/findings.hpp"

#include <algorithm>
#include <cmath>
#include <ctime>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>
#include <ostream>
#include <sstream>
#include <utility>

#include "core/failure.hpp"
#include "core/hash.hpp"
#include "core/manifest.hpp"
#include "core/result/blas.hpp"
#include "core/result/document.hpp"
#include "core/text/format.hpp"
#include "core/text/printable.hpp"
#include "harness/commands/measuring.hpp"
#include "harness/commands/terminal.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/run/folder/fingerprint.hpp"
#include "reports/page/check.hpp"

namespace attnbench::commands {
namespace {

using Json = nlohmann::json;

constexpr const char* writer = "check";

/// "markdown" or "json"; empty where neither flag nor ending says.
std::string format_of(const std::string& file, const std::string& said) {
  if (!said.empty()) return said;
  const std::string ending = std::filesystem::path(file).extension();
  if (ending == ".md") return "markdown";
  return ending == ".json" ? "json" : "";
}

std::filesystem::path folder_of(const std::filesystem::path& file) {
  return file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
}

std::string name_of(const std::filesystem::path& file) { return file.filename().string(); }

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

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

/// "on one thread: Haswell 95.6 GFLOP/s, SkylakeX 193 GFLOP/s".
std::string tried_text(const Json& blas) {
  std::string text;
  const Json tried = blas.value("tried", Json::object());
  for (const auto& [type, rate] : tried.items()) {
    text += (text.empty() ? "on one thread: " : ", ") + type + " " + result::human_count(rate) +
            "FLOP/s";
  }
  return text;
}

void print_machine(std::ostream& out, const Json& card) {
  std::vector<Row> rows;
  for (const char* key : {"host", "os", "kernel", "cpu_model", "cores", "threads", "allowed_cpus",
                          "cpu_quota", "governor", "virtualised", "isa"}) {
    if (card.contains(key)) rows.push_back({key, " " + shown(card[key])});
  }
  rows.push_back({"memory", " " + result::human_bytes(card.value("memory_bytes", 0.0))});
  const Json caches = card.value("caches", Json::object());
  rows.push_back({"caches", " " + result::human_bytes(caches.value("l1_bytes", 0.0)) + " L1, " +
                                result::human_bytes(caches.value("l2_bytes", 0.0)) + " L2, " +
                                result::human_bytes(caches.value("l3_bytes", 0.0)) + " L3"});
  if (card.contains("torch")) {
    const Json& torch = card["torch"];
    rows.push_back({"libtorch", " " + torch.value("build", "")});
    rows.push_back({"blas", " " + result::blas_text(card)});
    const std::string tried = tried_text(card.value("blas", Json::object()));
    if (!tried.empty()) rows.push_back({"", " " + tried});
    rows.push_back({"onednn", " " + torch.value("onednn_version", "no")});
  }
  out << "Machine\n";
  print_columns(out, rows, "  ");
}

void print_worker(std::ostream& out, const Json& worker) {
  out << "Worker\n";
  if (!worker["works"]) {
    out << "  cannot work: " << result::bounded_message(worker.value("reason", "")) << "\n";
    return;
  }
  out << "  starts in " << result::human_seconds(worker["start_seconds"]) << "; "
      << worker["stamp"].dump() << "\n";
  for (const Json& plugin : worker["plugins"]) {
    out << "  plugin " << plugin.value("path", "") << ": " << plugin.value("status", "");
    const std::string reason = plugin.value("reason", "");
    out << (reason.empty() ? "" : ", " + result::quotable(reason, 600)) << "\n";
  }
}

std::string number(const Json& condition, const char* key, const char* unit) {
  if (!condition.contains(key)) return "";
  return std::to_string(std::lround(condition[key].get<double>())) + " " + unit;
}

std::string frequency(const Json& condition, const char* key) {
  return condition.contains(key) ? result::human_count(condition[key]) + "Hz" : "";
}

/// "NOW of MOST", without what is unknown.
std::string of_most(const std::string& now, const std::string& most) {
  if (most.empty()) return now;
  return (now.empty() ? "at most " : now + " of ") + most;
}

std::string on_or_off(const Json& condition, const char* key) {
  if (!condition.contains(key)) return "";
  return condition[key].get<bool>() ? "on" : "off";
}

/// Properties of the card, then its present condition.
void print_card(std::ostream& out, const std::string& word, const Json& found) {
  const Json& card = found.at("card");
  const Json condition = found.value("condition", Json::object());
  std::vector<Row> rows;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) rows.push_back({name, " " + text});
  };
  add("name", card.value("name", ""));
  add("compute capability", card.value("compute_capability", ""));
  if (card.contains("multiprocessors")) add("multiprocessors", card["multiprocessors"].dump());
  add("driver", card.value("driver", condition.value("driver", "")));
  add("CUDA of the driver", card.value("driver_cuda", ""));
  std::string memory = result::human_bytes(card.value("memory_bytes", 0.0));
  if (condition.contains("memory_used_bytes")) {
    memory += ", " + result::human_bytes(condition["memory_used_bytes"]) + " in use";
  }
  add("memory", memory);
  add("L2", card.contains("l2_bytes") ? result::human_bytes(card["l2_bytes"]) : "");
  add("clock",
      of_most(frequency(condition, "clock_hz"), frequency(condition, "clock_greatest_hz")));
  add("memory's clock", frequency(condition, "clock_memory_hz"));
  add("power",
      of_most(number(condition, "power_watts", "W"), number(condition, "power_limit_watts", "W")));
  add("temperature", number(condition, "temperature_celsius", "°C"));
  add("persistence mode", on_or_off(condition, "persistence"));
  add("ECC", on_or_off(condition, "ecc"));
  add("MIG", on_or_off(condition, "mig"));
  if (condition.contains("refusal")) {
    add("what it does now", "not known: " + condition["refusal"].get<std::string>());
  }
  out << "  " << word << "\n";
  print_columns(out, rows, "    ");
}

void print_devices(std::ostream& out, const Json& devices) {
  if (devices.empty()) return;
  out << "Devices\n";
  for (const auto& [word, found] : devices.items()) {
    if (found.contains("refusal")) {
      out << "  " << word << "  cannot be used: " << found["refusal"].get<std::string>() << "\n";
    } else {
      print_card(out, word, found);
    }
  }
}

/// "fma_float32_flops_per_second" as name, rate and unit.
Row ceiling_row(const std::string& key, double rate) {
  for (const auto& [ending, unit] :
       {std::pair<std::string, std::string>{"_flops_per_second", "FLOP/s"},
        {"_bytes_per_second", "B/s"},
        {"_per_second", "/s"},
        {"_hz", "Hz"}}) {
    if (key.size() <= ending.size() || key.substr(key.size() - ending.size()) != ending) continue;
    return {key.substr(0, key.size() - ending.size()), result::human_count(rate) + unit};
  }
  return {};
}

void print_ceilings(std::ostream& out, const std::string& word, const Json& ceilings) {
  if (ceilings.contains("refusal")) {
    out << "Ceilings of " << word << "\n  not measured: " << shown(ceilings["refusal"]) << "\n";
    return;
  }
  std::vector<Row> rows;
  for (const auto& [key, value] : ceilings.items()) {
    if (!value.is_number()) continue;
    if (Row row = ceiling_row(key, value.get<double>()); !row.empty()) rows.push_back(row);
  }
  out << "Ceilings of " << word;
  if (ceilings.contains("threads")) {
    out << " (" << ceilings["threads"] << " threads, " << ceilings.value("isa", "") << ")";
  }
  out << "\n";
  print_columns(out, rows, "  ");
  const result::ProductShares shares = result::product_shares(ceilings);
  if (!shares.all_threads) return;
  out << "  gemm_float32 reaches " << percent(*shares.all_threads) << " of fma_float32";
  if (shares.one_thread) out << ", on one thread " << percent(*shares.one_thread);
  out << "\n";
}

void print_measured(std::ostream& out, const Json& found) {
  const Json measured = found.value("ceilings", Json::object());
  for (const auto& [word, ceilings] : measured.items()) print_ceilings(out, word, ceilings);
  if (!found.contains("noise")) return;
  const Json& noise = found["noise"];
  out << "Noise\n  the same work, " << result::human_seconds(noise["median_seconds"])
      << " each: 80 % of it within " << percent(noise["spread"])
      << "; two interleaved halves differ by " << percent(noise["difference"]) << "\n";
}

void print_places(std::ostream& out, const Json& places) {
  std::vector<Row> rows;
  for (const auto& [name, path] : places.items()) rows.push_back({name, shown(path)});
  out << "Places\n";
  print_columns(out, rows, "  ");
}

}  // namespace

void CheckReports::validate() const {
  for (const std::string& file : files) {
    if (format_of(file, format).empty()) {
      throw UsageFailure(
          "--out " + result::quotable(file) +
          ": expected a file that ends in .md or .json, or --format markdown or json");
    }
    std::error_code ignored;
    if (!std::filesystem::is_directory(folder_of(file), ignored)) {
      throw UsageFailure("--out " + result::quotable(file) + ": there is no folder " +
                         result::quotable(folder_of(file).string()) + "; make it first");
    }
    if (std::filesystem::is_directory(file, ignored)) {
      throw UsageFailure("--out " + result::quotable(file) +
                         ": this is a folder; expected the name of a file");
    }
    if (!force) result::Manifest(folder_of(file), writer).expect_ours({name_of(file)});
  }
}

void CheckReports::write(const Json& document) const {
  for (const std::string& file : files) {
    const bool json = format_of(file, format) == "json";
    const std::string text =
        json ? document.dump(1, ' ', false, Json::error_handler_t::replace) + "\n"
             : reports::check_markdown(document);
    result::Manifest manifest(folder_of(file), writer);
    manifest.announce(name_of(file), result::hash_text(text));
    manifest.save();
    result::write_atomically(file, text);
    manifest.confirm();
    manifest.save();
  }
}

Json check_facts(const suite::Catalogue& catalogue, const std::vector<std::string>& names,
                 const std::vector<std::string>& plugins, const std::string& device) {
  std::vector<std::string> wanted = names;
  for (std::string& name : wanted) {
    const auto alias = catalogue.aliases.find(name);
    if (alias != catalogue.aliases.end()) name = alias->second.mechanism;
  }
  Json mechanisms = Json::array();
  for (const Json& mechanism : catalogue.document.at("mechanisms")) {
    const bool one = std::find(wanted.begin(), wanted.end(), mechanism.at("name")) != wanted.end();
    if (one || wanted.empty()) mechanisms.push_back(mechanism);
  }
  Json machine = measure::machine_card();
  if (const Json card = measure::card_if_usable(device); !card.empty()) {
    machine["devices"][device] = card;
  }
  return {{"schema", 1},
          {"command", typed_command()},
          {"date", today()},
          {"build", run::provenance(run::binary_fingerprint(plugins))},
          {"stamp", catalogue.document.value("stamp", Json::object())},
          {"machine", std::move(machine)},
          {"mechanisms", std::move(mechanisms)}};
}

void print_doctor(std::ostream& out, const Json& found) {
  print_machine(out, found.at("machine"));
  print_worker(out, found.at("worker"));
  print_devices(out, found.at("devices"));
  print_measured(out, found);
  print_places(out, found.at("places"));
  const Json& sentences = found.at("machine").at("spoilers");
  out << (sentences.empty() ? "Nothing known disturbs measurements.\n"
                            : "What would disturb measurements now\n");
  for (const Json& sentence : sentences) out << "  - " << shown(sentence) << "\n";
}

}  // namespace attnbench::commands
