// What CUDA kernels take, by cuobjdump of the library that holds them: registers, stack (local
// memory, where spills go), static shared memory, and a hash of the machine code. It needs no
// device, and is the same on every machine with the same toolkit.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "harness/program/counts/counts.hpp"

namespace attnbench::counts {

struct DeviceKernel {
  std::int64_t registers = 0;  ///< of a thread
  std::int64_t stack = 0;      ///< bytes of a thread
  std::int64_t shared = 0;     ///< bytes of a block, without what is asked for at the launch
  std::string code;            ///< hash

  bool operator==(const DeviceKernel&) const = default;
};

/// The kernels by symbol and architecture, "_Z5firstPf (sm_90)".
using DeviceKernels = std::map<std::string, DeviceKernel>;

/// A line of the file of counts: "32 registers, 0 stack, 128 shared, code 0123456789abcdef".
std::string device_text(const DeviceKernel& kernel);
/// Throws UsageFailure naming `name` for anything else.
DeviceKernel device_kernel_from(const std::string& name, const std::string& text);

/// Reads the kernels from the outputs of `cuobjdump --dump-resource-usage` and `cuobjdump
/// --dump-sass`. Throws EnvironmentFailure where they do not tell of the same kernels, or of none.
DeviceKernels device_kernels_from(std::string_view usage, std::string_view code);

/// What the gate says of device code: findings of what grew, came or went, of the architectures
/// that both have; kernels whose code alone changed; architectures that were not built here.
struct DeviceFindings {
  std::vector<CountChange> findings;  ///< named "SYMBOL (sm_90) registers"
  std::size_t changed = 0;
  std::vector<std::string> not_built;
};
DeviceFindings device_findings(const DeviceKernels& stored, const DeviceKernels& now);

/// The kernels of a library, and the toolkit's version. `why_not` where they cannot be told.
struct DeviceCode {
  DeviceKernels kernels;
  std::string toolkit;  ///< "Cuda compilation tools, release 13.0, V13.0.88"
  std::string why_not;
};
DeviceCode device_code_of(const std::filesystem::path& library);

}  // namespace attnbench::counts
