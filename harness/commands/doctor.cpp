// attnbench doctor: the machine as a measurement sees it, what would spoil one, and whether all
// parts are there.
#include <CLI/CLI.hpp>
#include <chrono>
#include <filesystem>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include "harness/commands/columns.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/plugin_argument.hpp"
#include "harness/errors.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/noise.hpp"
#include "harness/result/format.hpp"
#include "harness/run/fingerprint.hpp"
#include "harness/run/worker_client.hpp"

namespace attnbench::commands {
namespace {

using measure::Json;

struct DoctorArguments {
  std::vector<std::string> plugins;
  int threads = 0;
  bool quick = false;
  bool json = false;
};

std::string percent(double share) {
  std::ostringstream text;
  text << std::fixed << std::setprecision(share < 0.1 ? 1 : 0) << 100 * share << " %";
  return text.str();
}

/// Starts a worker and asks it what it is: {works, start_seconds, stamp, plugins} or {works,
/// reason}.
Json look_at_worker(run::WorkerClient& worker) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    worker.start();
  } catch (const std::exception& error) {
    return {{"works", false}, {"reason", error.what()}};
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  return {{"works", true},
          {"start_seconds", passed.count()},
          {"stamp", worker.hello().value("stamp", Json::object())},
          {"plugins", worker.hello().value("plugins", Json::array())}};
}

/// Each kind beside the CPU: what its first one is, or why there is none: {KIND: {card | refusal}}.
Json devices() {
  Json found = Json::object();
  for (const auto& device : measure::all_devices()) {
    if (device->name() == "cpu") continue;
    const std::string refusal = device->refusal(0);
    found[device->name()] =
        refusal.empty() ? Json{{"card", device->card(0)}} : Json{{"refusal", refusal}};
  }
  return found;
}

Json places() {
  std::error_code ignored;
  return {{"programs", run::program_folder().string()},
          {"cache", run::cache_file("catalogue").parent_path().string()},
          {"runs", std::filesystem::absolute("runs", ignored).string()}};
}

/// The ceilings and LibTorch's part of the card, from a child of the worker; noise from here.
void measure_into(Json& found, run::WorkerClient& worker, int threads) {
  if (found["worker"]["works"]) {
    try {
      const Json probe =
          worker.request({{"type", "probe"}, {"device", "cpu"}, {"threads", threads}}, {}, 120);
      found["ceilings"] = probe.value("ceilings", Json::object());
      found["machine"]["torch"] = probe.value("machine", Json::object());
    } catch (const std::exception& error) {
      found["worker"]["works"] = false;
      found["worker"]["reason"] = error.what();
    }
  }
  if (!found.contains("ceilings")) found["ceilings"] = measure::cpu_ceilings(threads);
  const measure::Noise noise = measure::noise_self_test(threads);
  found["noise"] = {{"median_seconds", noise.median_seconds},
                    {"spread", noise.spread},
                    {"difference", noise.difference}};
}

Json examine(const DoctorArguments& arguments) {
  const int threads = arguments.threads > 0 ? arguments.threads : run::usable_cores();
  Json found = {{"machine", measure::machine_card()}};
  run::WorkerOptions options;
  options.plugins = arguments.plugins;
  options.threads = threads;
  run::WorkerClient worker(options);
  found["worker"] = look_at_worker(worker);
  found["devices"] = devices();
  if (!arguments.quick) measure_into(found, worker, threads);
  found["places"] = places();
  std::vector<std::string> spoilers = measure::spoilers(found["machine"]);
  const double spread = found.contains("noise") ? found["noise"]["spread"].get<double>() : 0;
  if (spread > 0.03) {
    spoilers.push_back("The same work differs from itself by " + percent(spread) +
                       " now: small differences between cells will not be told apart.");
  }
  found["machine"]["spoilers"] = spoilers;
  return found;
}

/// Text as it is, numbers short, lists with blanks between.
std::string shown(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string words;
  for (const Json& item : value) words += (words.empty() ? "" : " ") + shown(item);
  return words;
}

void print_machine(const Json& card) {
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
    rows.push_back({"blas", " " + torch.value("blas", "unknown") + " " +
                                torch.value("blas_core_type", "") + " " +
                                torch.value("blas_library", "")});
    rows.push_back({"onednn", " " + torch.value("onednn_version", "no")});
  }
  std::cout << "Machine\n";
  print_columns(std::cout, rows, "  ");
}

void print_worker(const Json& worker) {
  std::cout << "Worker\n";
  if (!worker["works"]) {
    std::cout << "  cannot work: " << worker.value("reason", "") << "\n";
    return;
  }
  std::cout << "  starts in " << result::human_seconds(worker["start_seconds"]) << "; "
            << worker["stamp"].dump() << "\n";
  for (const Json& plugin : worker["plugins"]) {
    std::cout << "  plugin " << plugin.value("path", "") << ": " << plugin.value("status", "");
    const std::string reason = plugin.value("reason", "");
    std::cout << (reason.empty() ? "" : ", " + reason) << "\n";
  }
}

void print_devices(const Json& devices) {
  std::vector<Row> rows;
  for (const auto& [name, found] : devices.items()) {
    const std::string refusal = found.value("refusal", "");
    if (!refusal.empty()) {
      rows.push_back({name, " cannot be used: " + refusal});
      continue;
    }
    const Json& card = found["card"];
    rows.push_back({name, " " + card.value("name", "") + ", compute capability " +
                              card.value("compute_capability", "") + ", " +
                              result::human_bytes(card.value("memory_bytes", 0.0)) + ", driver " +
                              card.value("driver", card.value("driver_cuda", ""))});
  }
  if (rows.empty()) return;
  std::cout << "Devices\n";
  print_columns(std::cout, rows, "  ");
}

/// "fma_float32_flops_per_second" is for programs: a person reads name, rate and unit.
Row ceiling_row(const std::string& key, double rate) {
  for (const auto& [ending, unit] :
       {std::pair<std::string, std::string>{"_flops_per_second", "FLOP/s"},
        {"_bytes_per_second", "B/s"},
        {"_per_second", "/s"}}) {
    if (key.size() <= ending.size() || key.substr(key.size() - ending.size()) != ending) continue;
    return {key.substr(0, key.size() - ending.size()), result::human_count(rate) + unit};
  }
  return {};
}

void print_measured(const Json& found) {
  if (!found.contains("ceilings")) return;
  const Json& ceilings = found["ceilings"];
  std::vector<Row> rows;
  for (const auto& [key, value] : ceilings.items()) {
    if (!value.is_number()) continue;
    if (Row row = ceiling_row(key, value.get<double>()); !row.empty()) rows.push_back(row);
  }
  std::cout << "Ceilings (" << ceilings.value("threads", 0) << " threads, "
            << ceilings.value("isa", "") << ")\n";
  print_columns(std::cout, rows, "  ");
  const Json& noise = found["noise"];
  std::cout << "Noise\n  the same work, " << result::human_seconds(noise["median_seconds"])
            << " each: 80 % of it within " << percent(noise["spread"])
            << "; two interleaved halves differ by " << percent(noise["difference"]) << "\n";
}

int doctor(const DoctorArguments& arguments) {
  const Json found = examine(arguments);
  bool works = found["worker"]["works"];
  for (const Json& plugin : found["worker"].value("plugins", Json::array())) {
    works = works && plugin.value("status", "ok") == "ok";
  }
  const ExitCode code = works ? ExitCode::done : ExitCode::environment;
  if (arguments.json) {
    std::cout << found.dump(2) << "\n";
    return static_cast<int>(code);
  }
  print_machine(found["machine"]);
  print_worker(found["worker"]);
  print_devices(found["devices"]);
  print_measured(found);
  std::cout << "Places\n";
  std::vector<Row> rows;
  for (const auto& [name, path] : found["places"].items()) rows.push_back({name, shown(path)});
  print_columns(std::cout, rows, "  ");
  const Json& spoilers = found["machine"]["spoilers"];
  std::cout << (spoilers.empty() ? "Nothing that is known to spoil a measurement.\n"
                                 : "What would spoil a measurement now\n");
  for (const Json& sentence : spoilers) std::cout << "  - " << shown(sentence) << "\n";
  if (!works) std::cout << "This installation cannot measure: see above.\n";
  return static_cast<int>(code);
}

}  // namespace

void add_doctor(CLI::App& app, Chosen& chosen) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Look at the machine: what it can do, what would spoil a measurement");
  auto arguments = std::make_shared<DoctorArguments>();
  add_plugin_argument(*command, arguments->plugins);
  command->add_option("--threads", arguments->threads, "Threads to measure with (default: all)")
      ->check(CLI::PositiveNumber);
  command->add_flag("--quick", arguments->quick, "Leave out the ceilings and the noise test");
  command->add_flag("--json", arguments->json, "Everything found, as JSON");
  command->callback([arguments, &chosen] { chosen = [arguments] { return doctor(*arguments); }; });
}

}  // namespace attnbench::commands
