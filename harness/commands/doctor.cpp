// attnbench doctor: the machine, what would disturb measurements on it, and whether all parts work.
#include <chrono>
#include <filesystem>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "core/failure.hpp"
#include "core/result/blas.hpp"
#include "harness/commands/command.hpp"
#include "harness/commands/findings.hpp"
#include "harness/commands/worker_arguments.hpp"
#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/noise_sources.hpp"
#include "harness/run/folder/fingerprint.hpp"
#include "harness/run/plan/blas_core.hpp"
#include "harness/run/plan/limits.hpp"
#include "harness/run/worker/worker_client.hpp"

namespace attnbench::commands {
namespace {

using measure::Json;

constexpr double probe_seconds = 120;

struct DoctorArguments {
  std::vector<std::string> plugins;
  std::string device;  ///< empty = the CPU, and the first usable one of each other kind
  int threads = 0;
  bool quick = false;
  bool json = false;
  bool keep_blas_core = false;
};

/// Starts a worker: {works, start_seconds, stamp, plugins} or {works, reason}.
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

/// A device other than the CPU: {card, condition}, or {refusal} where it cannot be used.
Json look_at_device(const measure::Device& device, int index) {
  const std::string refusal = device.refusal(index);
  if (!refusal.empty()) return {{"refusal", refusal}};
  return {{"card", device.card(index)}, {"condition", device.condition(index)}};
}

/// The named device, else the first of each kind, without the CPU.
Json devices(const std::string& named) {
  Json found = Json::object();
  for (const auto& device : measure::all_devices()) {
    const std::string kind = device->name();
    if (kind == "cpu") continue;
    if (named.empty()) found[kind] = look_at_device(*device, 0);
    if (named.substr(0, named.find(':')) == kind) {
      found[named] = look_at_device(*device, measure::device_index(named));
    }
  }
  return found;
}

/// The devices to measure.
std::vector<std::string> words_of(const DoctorArguments& arguments, const Json& devices) {
  if (!arguments.device.empty()) return {arguments.device};
  std::vector<std::string> words = {"cpu"};
  for (const auto& [word, found] : devices.items()) {
    if (!found.contains("refusal")) words.push_back(word);
  }
  return words;
}

/// Adds ceilings of one device, or {refusal}, and LibTorch's part of the machine card, from a child
/// of the worker. Without a worker the CPU's ceilings are measured here.
void probe_into(Json& found, run::WorkerClient& worker, const std::string& word, int threads) {
  Json& ceilings = found["ceilings"][word];
  std::string reason = found["worker"].value("reason", "");
  if (found["worker"]["works"]) {
    try {
      const Json probe = worker.request({{"type", "probe"}, {"device", word}, {"threads", threads}},
                                        {}, probe_seconds);
      ceilings = probe.value("ceilings", Json::object());
      Json torch = probe.value("machine", Json::object());
      // The setting in effect, not the wanted one.
      found["machine"]["blas"].update(torch.value("blas", Json::object()));
      torch.erase("blas");
      found["machine"]["torch"] = torch;
      return;
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  if (word == "cpu") {
    found["worker"]["works"] = false;
    found["worker"]["reason"] = reason;
    ceilings = measure::cpu_ceilings(threads);
  } else {
    ceilings = {{"refusal", reason}};
  }
}

void measure_into(Json& found, run::WorkerClient& worker, const std::vector<std::string>& words,
                  int threads) {
  for (const std::string& word : words) probe_into(found, worker, word, threads);
  const measure::Noise noise = measure::noise_self_test(threads);
  found["noise"] = {{"median_seconds", noise.median_seconds},
                    {"spread", noise.spread},
                    {"difference", noise.difference}};
}

Json places() {
  std::error_code ignored;
  return {{"programs", run::program_folder().string()},
          {"cache", run::cache_file("catalogue").parent_path().string()},
          {"runs", std::filesystem::absolute("runs", ignored).string()}};
}

std::vector<std::string> noise_sources_of(const Json& found) {
  std::vector<std::string> sentences = measure::noise_sources(found["machine"]);
  for (const auto& [word, device] : found["devices"].items()) {
    for (std::string& sentence :
         measure::card_noise_sources(word, device.value("condition", Json::object()))) {
      sentences.push_back(std::move(sentence));
    }
  }
  const Json ceilings = found.value("ceilings", Json::object()).value("cpu", Json::object());
  if (const std::string slow = result::blas_warning(ceilings, found["machine"]); !slow.empty()) {
    sentences.push_back(slow);
  }
  const double spread = found.contains("noise") ? found["noise"]["spread"].get<double>() : 0;
  if (spread > 0.03) {
    sentences.push_back("The same work differs from itself by " +
                        std::to_string(static_cast<int>(100 * spread + 0.5)) +
                        " % now: small differences between cells will not be told apart.");
  }
  return sentences;
}

Json examine(const DoctorArguments& arguments) {
  const int threads = arguments.threads > 0 ? arguments.threads : run::usable_cores();
  // Look at cards before anything of ours runs on them.
  Json found = {{"machine", measure::machine_card()}, {"devices", devices(arguments.device)}};
  const std::vector<std::string> words = words_of(arguments, found["devices"]);
  run::WorkerOptions options;
  options.plugins = arguments.plugins;
  options.threads = threads;
  options.device = words.back();
  options.keep_blas_core = arguments.keep_blas_core;
  const run::BlasChoice blas =
      run::blas_choice(arguments.keep_blas_core, arguments.quick ? run::BlasTrying::only_remembered
                                                                 : run::BlasTrying::allowed);
  options.blas_core = blas.set;
  found["machine"]["blas"] = run::to_json(blas);
  run::WorkerClient worker(options);
  found["worker"] = look_at_worker(worker);
  if (!arguments.quick) measure_into(found, worker, words, threads);
  found["places"] = places();
  found["machine"]["spoilers"] = noise_sources_of(found);
  return found;
}

/// Whether cells can be measured with the worker, the plugins and the devices.
bool can_measure(const Json& found) {
  bool works = found["worker"]["works"];
  for (const Json& plugin : found["worker"].value("plugins", Json::array())) {
    works = works && plugin.value("status", "ok") == "ok";
  }
  for (const Json& ceilings : found.value("ceilings", Json::object())) {
    works = works && !ceilings.contains("refusal");
  }
  return works;
}

int doctor(const DoctorArguments& arguments) {
  if (!arguments.device.empty()) require_device(arguments.device);
  const Json found = examine(arguments);
  const bool works = can_measure(found);
  if (arguments.json) {
    std::cout << found.dump(2) << "\n";
  } else {
    print_doctor(std::cout, found);
    if (!works) std::cout << "This installation cannot measure: see above.\n";
  }
  return static_cast<int>(works ? ExitCode::done : ExitCode::environment);
}

}  // namespace

void add_doctor(CommandLine& line) {
  Command& command =
      line.add("doctor", "Examine the machine: ceilings, and what would disturb measurements");
  auto arguments = std::make_shared<DoctorArguments>();
  add_plugin_argument(command, arguments->plugins);
  command.option(
      "--device", arguments->device,
      "Only this device: cpu, cuda or cuda:N (default: the CPU, and a card if there is one)");
  command.option("--threads", arguments->threads, "Threads to measure with (default: all)")
      .positive();
  command.flag("--quick", arguments->quick, "Leave out the ceilings and the noise test");
  command.flag("--keep-blas-core", arguments->keep_blas_core,
               "Use the OPENBLAS_CORETYPE of the environment, and the BLAS of LD_LIBRARY_PATH");
  command.flag("--json", arguments->json, "All findings as JSON");
  command.footer("Ends with 0, or with 3 where this installation cannot measure at all.");
  command.runs([arguments] { return doctor(*arguments); });
}

}  // namespace attnbench::commands
