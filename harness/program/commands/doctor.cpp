// attnbench doctor: the machine, what would disturb measurements on it, and whether all parts work.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "core/failure.hpp"
#include "core/process/fingerprint.hpp"
#include "core/process/limits.hpp"
#include "core/result/machine.hpp"
#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/device.hpp"
#include "harness/measure/machine.hpp"
#include "harness/measure/noise_sources.hpp"
#include "harness/program/commands/shared/command.hpp"
#include "harness/program/commands/shared/findings.hpp"
#include "harness/program/commands/shared/worker_arguments.hpp"
#include "harness/program/run/client/worker_client.hpp"
#include "harness/program/run/plan/blas_core.hpp"

namespace attnbench::commands {
namespace {

constexpr double probe_seconds = 120;

struct DoctorArguments {
  std::vector<std::string> plugins;
  std::string device;  ///< empty = the CPU, and the first usable one of each other kind
  int threads = 0;
  bool quick = false;
  bool json = false;
  bool keep_blas_core = false;
  double spread_most = 0;  ///< of the noise test; 0 = any
};

void look_at_worker(WorkerFound& found, run::WorkerClient& worker) {
  const auto begin = std::chrono::steady_clock::now();
  try {
    worker.start();
  } catch (const std::exception& error) {
    found.reason = error.what();
    return;
  }
  const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - begin;
  found.works = true;
  found.start_seconds = passed.count();
  found.stamp = worker.hello().stamp;
  found.plugins = worker.hello().plugins;
}

DeviceFound look_at_device(const measure::Device& device, int index) {
  const std::string refusal = device.refusal(index);
  if (!refusal.empty()) return {{}, {}, refusal};
  return {device.card(index).get<result::DeviceCard>(),
          device.condition(index).get<measure::DeviceCondition>(), ""};
}

/// The named device, else the first of each kind, without the CPU.
std::map<std::string, DeviceFound> devices(const std::string& named) {
  std::map<std::string, DeviceFound> found;
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
std::vector<std::string> words_of(const DoctorArguments& arguments,
                                  const std::map<std::string, DeviceFound>& devices) {
  if (!arguments.device.empty()) return {arguments.device};
  std::vector<std::string> words = {"cpu"};
  for (const auto& [word, found] : devices) {
    if (found.refusal.empty()) words.push_back(word);
  }
  return words;
}

/// Adds ceilings of one device, or why there are none, and LibTorch's part of the machine card,
/// from a child of the worker. Without a worker the CPU's ceilings are measured here.
void probe_into(DoctorFound& found, run::WorkerClient& worker, const std::string& word,
                int threads) {
  std::string reason = found.worker.reason;
  if (found.worker.works) {
    try {
      protocol::Probe request;
      request.device = word;
      request.threads = threads;
      const auto probe = worker.request(request, {}, probe_seconds).get<protocol::ProbeAnswer>();
      found.ceilings[word] = probe.ceilings;
      Json torch = probe.machine;
      found.machine.blas = result::blas_as_loaded(found.machine.blas.value_or(result::Blas{}),
                                                  torch.value("blas", Json::object()));
      torch.erase("blas");
      found.machine.further["torch"] = torch;
      return;
    } catch (const std::exception& error) {
      reason = error.what();
    }
  }
  if (word == "cpu") {
    found.worker.works = false;
    found.worker.reason = reason;
    found.ceilings[word] = measure::cpu_ceilings(threads);
  } else {
    found.ceilings[word] = {{"refusal", reason}};
  }
}

std::vector<std::string> noise_sources_of(const DoctorFound& found) {
  std::vector<std::string> sentences = measure::noise_sources(found.machine);
  for (const auto& [word, device] : found.devices) {
    if (!device.refusal.empty()) continue;
    for (std::string& sentence : measure::card_noise_sources(word, *device.condition)) {
      sentences.push_back(std::move(sentence));
    }
  }
  const auto cpu = found.ceilings.find("cpu");
  const Values ceilings = cpu == found.ceilings.end() ? Values{} : cpu->second;
  if (const std::string slow = result::blas_warning(ceilings, found.machine); !slow.empty()) {
    sentences.push_back(slow);
  }
  const double spread = found.noise ? found.noise->spread : 0;
  if (spread > 0.03) {
    sentences.push_back("The same work differs from itself by " +
                        std::to_string(std::lround(100 * spread)) +
                        " % now: small differences between cells will not be told apart.");
  }
  return sentences;
}

DoctorFound examine(const DoctorArguments& arguments) {
  const int threads = arguments.threads > 0 ? arguments.threads : process::usable_cores();
  DoctorFound found;
  // Look at cards before anything of ours runs on them.
  found.machine = measure::machine_card();
  found.devices = devices(arguments.device);
  const std::vector<std::string> words = words_of(arguments, found.devices);
  run::WorkerOptions options;
  options.plugins = arguments.plugins;
  options.threads = threads;
  options.device = words.back();
  options.keep_blas_core = arguments.keep_blas_core;
  const run::BlasChoice blas =
      run::blas_choice(arguments.keep_blas_core, arguments.quick ? run::BlasTrying::only_remembered
                                                                 : run::BlasTrying::allowed);
  options.blas_core = blas.set;
  found.machine.blas = Json(blas).get<result::Blas>();
  run::WorkerClient worker(options);
  look_at_worker(found.worker, worker);
  if (!arguments.quick) {
    for (const std::string& word : words) probe_into(found, worker, word, threads);
  }
  if (!arguments.quick || arguments.spread_most > 0) {
    const measure::Noise noise = measure::noise_self_test(threads);
    found.noise = NoiseFound{noise.median_seconds, noise.spread, noise.difference};
  }
  found.machine.noise_sources = noise_sources_of(found);
  std::error_code ignored;
  found.places = {{"programs", process::program_folder().string()},
                  {"cache", process::cache_file("catalogue").parent_path().string()},
                  {"runs", std::filesystem::absolute("runs", ignored).string()}};
  return found;
}

/// Whether the same work differs from itself by more than it may.
bool is_too_disturbed(const DoctorArguments& arguments, const DoctorFound& found) {
  if (arguments.spread_most == 0 || !found.noise) return false;
  return found.noise->spread > arguments.spread_most;
}

/// Whether cells can be measured with the worker, the plugins and the devices.
bool can_measure(const DoctorFound& found) {
  const bool measured = std::none_of(found.ceilings.begin(), found.ceilings.end(),
                                     [](auto& each) { return each.second.contains("refusal"); });
  const auto plugins = found.worker.plugins.value_or(std::vector<PluginSpec>{});
  return found.worker.works && measured &&
         std::all_of(plugins.begin(), plugins.end(),
                     [](const PluginSpec& plugin) { return plugin.status == "ok"; });
}

int doctor(const DoctorArguments& arguments) {
  if (!arguments.device.empty()) require_device(arguments.device);
  const DoctorFound found = examine(arguments);
  const bool works = can_measure(found);
  if (arguments.json) {
    std::cout << Json(found).dump(2) << "\n";
  } else {
    print_doctor(std::cout, found);
    if (!works) std::cerr << "attnbench: this installation cannot measure: its report says why\n";
  }
  if (!works) return static_cast<int>(ExitCode::environment);
  if (!is_too_disturbed(arguments, found)) return static_cast<int>(ExitCode::done);
  std::cerr << "attnbench: too disturbed: the same work differs from itself by "
            << std::lround(100 * found.noise->spread) << " % now, "
            << std::lround(100 * arguments.spread_most) << " % are allowed\n";
  return static_cast<int>(ExitCode::undecided);
}

}  // namespace

void declare_doctor(Command& command) {
  auto arguments = std::make_shared<DoctorArguments>();
  add_plugin_argument(command, arguments->plugins);
  command.option(
      "--device", arguments->device,
      "Only this device: cpu, cuda or cuda:N (default: the CPU, and a card if there is one)");
  command.option("--threads", arguments->threads, "Threads to measure with (default: all)")
      .within(1, 4096);
  command.flag("--quick", arguments->quick, "Leave out the ceilings and the noise test");
  command.flag("--keep-blas-core", arguments->keep_blas_core,
               "Use the OPENBLAS_CORETYPE of the environment, and the BLAS of LD_LIBRARY_PATH");
  command
      .option(
          "--spread-most", arguments->spread_most,
          "End with 4 where the noise test, which --quick then keeps, spreads by a larger share")
      .within(0.0, 10.0);
  command.flag("--json", arguments->json, "All findings as JSON");
  command.footer(
      "Ends with 0, with 3 where this installation cannot measure at all, and with 4 where "
      "--spread-most\n"
      "is given and the same work differs from itself by more.");
  command.runs([arguments] { return doctor(*arguments); });
}

}  // namespace attnbench::commands
