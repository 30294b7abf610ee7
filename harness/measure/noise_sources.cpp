#include "harness/measure/noise_sources.hpp"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <vector>

#include "core/statistics.hpp"
#include "harness/measure/ceilings_cpu.hpp"
#include "harness/measure/condition.hpp"
#include "harness/measure/neighbours.hpp"

namespace attnbench::measure {
namespace {

using Json = nlohmann::json;

std::string number(double value) {
  std::ostringstream text;
  text.precision(2);
  text << value;
  return text.str();
}

void look_at_load(const result::MachineCard& card, std::vector<std::string>& found) {
  const Json load = card.load.value_or(result::Load{});
  const std::string busy =
      to_text(neighbours_from(load), static_cast<int>(card.threads.value_or(0)));
  if (!busy.empty()) found.push_back(busy + " Stop them, or expect wide intervals.");
}

void look_at_environment(const result::MachineCard& card, std::vector<std::string>& found) {
  if (!card.environment) return;
  const std::map<std::string, std::string>& environment = *card.environment;
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (!environment.contains(name)) continue;
    found.push_back(
        std::string(name) + "=" + environment.at(name) +
        " is set, which can halve the speed of matrix products: workers run without it, "
        "and with the core type that is fastest here, unless told to keep it "
        "(--keep-blas-core); unset it to be sure (env -u " +
        name + ").");
  }
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (!environment.contains(name)) continue;
    found.push_back(std::string(name) + "=" + environment.at(name) +
                    " is set, which decides how threads wait for each other: calls of "
                    "microseconds can take several times as long; unset it (env -u " +
                    name + ") unless it is there on purpose.");
  }
  for (const char* name : {"DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS"}) {
    if (!environment.contains(name)) continue;
    found.push_back(std::string(name) + "=" + environment.at(name) +
                    " is set, which limits the instructions that libraries use: unset it (env -u " +
                    name + ") unless it is there on purpose.");
  }
  if (environment.contains("LD_PRELOAD")) {
    found.push_back(
        "LD_PRELOAD is set, so that functions of the system may be replaced: unset it.");
  }
}

void look_at_cpu(const result::MachineCard& card, std::vector<std::string>& found) {
  if (!card.governor.empty() && card.governor != "performance") {
    found.push_back("The CPU's governor is \"" + card.governor +
                    "\", so that the clock depends on what ran before: choose \"performance\" "
                    "(cpupower frequency-set -g performance).");
  }
  const double quota = card.cpu_quota.value_or(0);
  const auto cpus = card.allowed_cpus.value_or(std::vector<int>{});
  if (quota > 0 && quota < static_cast<double>(cpus.size())) {
    found.push_back("This container may use " + number(quota) + " CPUs but sees " +
                    std::to_string(cpus.size()) +
                    ", and is stopped when it uses more: say --threads " +
                    std::to_string(std::max(1, static_cast<int>(std::floor(quota)))) + ".");
  }
}

/// A card at rest reports a load of a few hundredths now and then.
constexpr double idle_share = 0.05;
constexpr std::size_t max_told = 5;

std::string whole(double value) { return std::to_string(std::lround(value)); }

void look_at_others(const std::string& word, const DeviceCondition& condition,
                    std::vector<std::string>& found) {
  const auto processes = condition.processes.value_or(std::vector<CardProcess>{});
  const double busy = condition.busy_share.value_or(0);
  if (!processes.empty()) {
    std::string numbers;
    for (std::size_t i = 0; i < std::min(processes.size(), max_told); ++i) {
      numbers += (i == 0 ? "" : ", ") + std::to_string(processes[i].pid);
    }
    if (processes.size() > max_told) {
      numbers += " and " + std::to_string(processes.size() - max_told) + " more";
    }
    found.push_back(std::string("Other processes use ") + word + " (" + numbers +
                    "): they take its time, its memory and its clock.");
  } else if (busy > idle_share) {
    found.push_back(word + " is " + whole(100 * busy) +
                    " % busy with work that is not seen from here, such as another container's.");
  }
}

void look_at_modes(const std::string& word, const DeviceCondition& condition,
                   std::vector<std::string>& found) {
  if (!condition.persistence.value_or(true)) {
    found.push_back("The driver leaves " + word +
                    " between processes (persistence mode is off), so that each begins slowly and "
                    "with a low clock: nvidia-smi -pm 1.");
  }
  if (condition.mig.value_or(false)) {
    found.push_back(word +
                    " is divided (MIG is on): what is measured is a slice of the card that "
                    "it is named after.");
  }
  const bool ecc = condition.ecc.value_or(true);
  if (!ecc) {
    found.push_back("ECC of " + word +
                    " is off, which most others leave on: bandwidth is not that of other cards.");
  }
  if (condition.ecc_pending.value_or(ecc) != ecc) {
    found.push_back("ECC of " + word +
                    " changes at the next reset: numbers from before it will "
                    "not hold after it.");
  }
}

void look_at_clocks(const std::string& word, const DeviceCondition& condition,
                    std::vector<std::string>& found) {
  const double limit = condition.power_limit_watts.value_or(0);
  const double usual = condition.power_limit_usual_watts.value_or(limit);
  if (limit < usual) {
    found.push_back(word + " may take " + whole(limit) + " W where " + whole(usual) +
                    " W are usual: its clock falls under load.");
  }
  std::string reasons;
  for (const std::string& reason : condition.slowed_by.value_or(std::vector<std::string>{})) {
    reasons += (reasons.empty() ? "" : ", ") + reason;
  }
  if (!reasons.empty())
    found.push_back("The clock of " + word + " is held down by " + reasons + ".");
}

}  // namespace

std::vector<std::string> noise_sources(const result::MachineCard& card) {
  std::vector<std::string> found;
  look_at_load(card, found);
  look_at_environment(card, found);
  look_at_cpu(card, found);
  return found;
}

std::vector<std::string> card_noise_sources(const std::string& word, const Json& json) {
  const auto condition = json.get<DeviceCondition>();
  std::vector<std::string> found;
  look_at_others(word, condition, found);
  look_at_modes(word, condition, found);
  look_at_clocks(word, condition, found);
  return found;
}

Noise noise_self_test(int threads) {
  constexpr int pairs = 20;
  std::vector<double> halves[2];
  std::vector<double> all;
  for (int i = 0; i < 2 * pairs; ++i) {
    // A B B A: a drift of the clock falls on both halves alike.
    const int half = i % 4 == 1 || i % 4 == 2 ? 1 : 0;
    const double seconds = calibration_seconds(threads);
    halves[half].push_back(seconds);
    all.push_back(seconds);
  }
  std::sort(all.begin(), all.end());
  Noise noise;
  noise.median_seconds = median(all);
  noise.spread = (all[all.size() * 9 / 10] - all[all.size() / 10]) / noise.median_seconds;
  noise.difference = std::abs(median(halves[0]) / median(halves[1]) - 1);
  return noise;
}

}  // namespace attnbench::measure
