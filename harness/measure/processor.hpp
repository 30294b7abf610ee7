// What the kernel says of the processor: its name, and which instructions it has.
#pragma once

#include <string>
#include <vector>

namespace attnbench::measure {

/// What /proc/cpuinfo says, or a file of its form.
struct Processor {
  /// "AMD EPYC 9654 96-Core Processor"; on aarch64, where the kernel gives numbers, what these are
  /// called, "Arm Neoverse-V2", with ", " between unlike cores; empty where neither is there.
  std::string model;
  int cores = 0;         ///< physical; 0 where the file has none
  double megahertz = 0;  ///< likewise
  bool virtualised = false;
  std::vector<std::string> isa;  ///< the extensions that matter here, in the file's order
};
Processor processor(const std::string& cpuinfo = "/proc/cpuinfo");

}  // namespace attnbench::measure
