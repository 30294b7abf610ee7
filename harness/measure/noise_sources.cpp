// What is known to spoil a measurement, and what to do about it.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "harness/measure/machine.hpp"
#include "harness/measure/neighbours.hpp"

namespace attnbench::measure {
namespace {

std::string number(double value) {
  std::ostringstream text;
  text.precision(2);
  text << value;
  return text.str();
}

void look_at_load(const Json& card, std::vector<std::string>& found) {
  const std::string busy =
      to_text(neighbours_from(card.value("load", Json::object())), card.value("threads", 0));
  if (!busy.empty()) found.push_back(busy + " Stop them, or expect wide intervals.");
}

void look_at_environment(const Json& card, std::vector<std::string>& found) {
  const Json environment = card.value("environment", Json::object());
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE"}) {
    if (!environment.contains(name)) continue;
    found.push_back(
        std::string(name) + "=" + environment[name].get<std::string>() +
        " is set, which can halve the speed of matrix products: workers run without it, "
        "and with the core type that is fastest here, unless told to keep it "
        "(--keep-blas-core); unset it to be sure (env -u " +
        name + ").");
  }
  for (const char* name : {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT"}) {
    if (!environment.contains(name)) continue;
    found.push_back(std::string(name) + "=" + environment[name].get<std::string>() +
                    " is set, which decides how threads wait for each other: calls of "
                    "microseconds can take several times as long; unset it (env -u " +
                    name + ") unless it is there on purpose.");
  }
  for (const char* name : {"DNNL_MAX_CPU_ISA", "ATEN_CPU_CAPABILITY", "MKL_ENABLE_INSTRUCTIONS"}) {
    if (!environment.contains(name)) continue;
    found.push_back(std::string(name) + "=" + environment[name].get<std::string>() +
                    " is set, which limits the instructions that libraries use: unset it (env -u " +
                    name + ") unless it is there on purpose.");
  }
  if (environment.contains("LD_PRELOAD")) {
    found.push_back(
        "LD_PRELOAD is set, so that functions of the system may be replaced: unset it.");
  }
}

void look_at_cpu(const Json& card, std::vector<std::string>& found) {
  const std::string governor = card.value("governor", "performance");
  if (governor != "performance") {
    found.push_back("The CPU's governor is \"" + governor +
                    "\", so that the clock depends on what ran before: choose \"performance\" "
                    "(cpupower frequency-set -g performance).");
  }
  const double quota = card.value("cpu_quota", 0.0);
  const auto cpus = card.value("allowed_cpus", std::vector<int>{});
  if (quota > 0 && quota < static_cast<double>(cpus.size())) {
    found.push_back("This container may use " + number(quota) + " CPUs but sees " +
                    std::to_string(cpus.size()) +
                    ", and is stopped when it uses more: say --threads " +
                    std::to_string(std::max(1, static_cast<int>(std::floor(quota)))) + ".");
  }
}

}  // namespace

std::vector<std::string> spoilers(const Json& card) {
  std::vector<std::string> found;
  look_at_load(card, found);
  look_at_environment(card, found);
  look_at_cpu(card, found);
  return found;
}

}  // namespace attnbench::measure
