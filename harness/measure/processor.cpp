#include "harness/measure/processor.hpp"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

namespace attnbench::measure {
namespace {

std::string trimmed(const std::string& text) {
  const auto first = text.find_first_not_of(" \t");
  const auto last = text.find_last_not_of(" \t");
  return first == std::string::npos ? "" : text.substr(first, last - first + 1);
}

/// Implementers by number: Linux, arch/arm64/include/asm/cputype.h.
const std::map<std::string, std::string> implementers{
    {"0x41", "Arm"},       {"0x42", "Broadcom"}, {"0x43", "Cavium"},   {"0x46", "Fujitsu"},
    {"0x48", "HiSilicon"}, {"0x4e", "NVIDIA"},   {"0x51", "Qualcomm"}, {"0x61", "Apple"},
    {"0x6d", "Microsoft"}, {"0xc0", "Ampere"}};

/// Arm's own cores by number: as above.
const std::map<std::string, std::string> arm_cores{
    {"0xd03", "Cortex-A53"},  {"0xd05", "Cortex-A55"},  {"0xd07", "Cortex-A57"},
    {"0xd08", "Cortex-A72"},  {"0xd09", "Cortex-A73"},  {"0xd0b", "Cortex-A76"},
    {"0xd0c", "Neoverse-N1"}, {"0xd0d", "Cortex-A77"},  {"0xd40", "Neoverse-V1"},
    {"0xd41", "Cortex-A78"},  {"0xd44", "Cortex-X1"},   {"0xd46", "Cortex-A510"},
    {"0xd47", "Cortex-A710"}, {"0xd48", "Cortex-X2"},   {"0xd49", "Neoverse-N2"},
    {"0xd4d", "Cortex-A715"}, {"0xd4e", "Cortex-X3"},   {"0xd4f", "Neoverse-V2"},
    {"0xd80", "Cortex-A520"}, {"0xd81", "Cortex-A720"}, {"0xd82", "Cortex-X4"},
    {"0xd84", "Neoverse-V3"}, {"0xd85", "Cortex-X925"}, {"0xd87", "Cortex-A725"},
    {"0xd8e", "Neoverse-N3"}};

/// "Arm Neoverse-V2"; "Apple core 0x022" of a part without a name here.
std::string core_name(const std::string& implementer, const std::string& part) {
  const auto maker = implementers.find(implementer);
  const std::string by = maker == implementers.end() ? "implementer " + implementer : maker->second;
  const auto core = arm_cores.find(part);
  const bool named = by == "Arm" && core != arm_cores.end();
  return by + " " + (named ? core->second : "core " + part);
}

std::vector<std::string> instruction_sets(const std::string& flags) {
  static const std::set<std::string> known{
      "avx",      "avx2",        "fma",         "f16c",        "avx512f",  "avx512bw",
      "avx512vl", "avx512_bf16", "avx512_fp16", "avx512_vnni", "amx_bf16", "amx_int8",
      "asimd",    "asimdhp",     "bf16",        "i8mm",        "sve",      "sve2"};
  std::vector<std::string> found;
  std::istringstream words(flags);
  for (std::string word; words >> word;) {
    if (known.contains(word)) found.push_back(word);
  }
  return found;
}

}  // namespace

Processor processor(const std::string& cpuinfo) {
  Processor seen;
  std::vector<std::string> names;
  std::set<std::string> cores;
  std::string package, implementer, flags;
  std::ifstream stream(cpuinfo);
  for (std::string line; std::getline(stream, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string key = trimmed(line.substr(0, colon));
    const std::string value = trimmed(line.substr(colon + 1));
    if (key == "model name" && seen.model.empty()) seen.model = value;
    if (key == "cpu MHz" && seen.megahertz == 0) seen.megahertz = std::atof(value.c_str());
    if ((key == "flags" || key == "Features") && flags.empty()) flags = value;
    if (key == "physical id") package = value;
    if (key == "core id") cores.insert(package + " " + value);
    if (key == "CPU implementer") implementer = value;
    if (key != "CPU part") continue;
    const std::string name = core_name(implementer, value);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  if (seen.model.empty()) {
    for (const std::string& name : names) seen.model += (seen.model.empty() ? "" : ", ") + name;
  }
  seen.cores = static_cast<int>(cores.size());
  seen.virtualised = (" " + flags + " ").find(" hypervisor ") != std::string::npos;
  seen.isa = instruction_sets(flags);
  return seen;
}

}  // namespace attnbench::measure
