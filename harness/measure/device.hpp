// Device: a kind of hardware that cells run on. One file per kind, harness/measure/device_NAME.cpp,
// which defines `std::unique_ptr<Device> device_NAME()`; the table is generated from the folder.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "harness/measure/sampler.hpp"

namespace attnbench::measure {

class Device {
 public:
  virtual ~Device() = default;
  virtual std::string name() const = 0;
  /// Why device number `index` cannot be used (no driver, no such device); empty = it can.
  virtual std::string refusal(int index) const = 0;
  /// Selects the device number, for this thread, that the functions below use.
  virtual void select(int) const {}
  /// Properties of number `index`: {name, compute_capability, multiprocessors, memory_bytes,
  /// l2_bytes, driver, driver_cuda} where known; `memory_bytes` is the device's own memory. Empty
  /// for the CPU, which the machine card describes. The device need not be selected.
  virtual nlohmann::json card(int index) const;
  /// The present condition of number `index` from its management library (see nvml_condition);
  /// empty without such a library.
  virtual nlohmann::json condition(int index) const;
  virtual std::unique_ptr<Stopwatch> stopwatch() const = 0;
  /// Ceilings, measured now, without GEMM rates; see the record's `ceilings`.
  virtual nlohmann::json ceilings(int threads) const = 0;
  /// Seconds of a fixed piece of work: the device's present speed.
  virtual double calibration_seconds(int threads) const = 0;
  /// The clock under load over its maximum; 0 where unknown.
  virtual double clock_ratio() const { return 0; }
};

/// All kinds of device that this program was built with, usable or not.
const std::vector<std::unique_ptr<Device>>& all_devices();

/// The device that `word` names, a kind, or kind:index such as cuda:1. Throws EnvironmentFailure,
/// with the reason, where it is unknown or cannot be used.
const Device& usable_device(const std::string& word);
/// The device's card; null where it is unknown or cannot be used.
nlohmann::json card_if_usable(const std::string& word);
/// The number in `word`; 0 where it has none.
int device_index(const std::string& word);

/// The CPU; of other kinds the generated table alone knows the function.
std::unique_ptr<Device> device_cpu();

/// The CPUs this thread may run on, in order.
std::vector<int> allowed_cpus();

/// Pins this process to `threads` of its allowed CPUs, the present one first, and returns them.
/// Does nothing where that is all of them or more. Call it before the first parallel operation:
/// threads inherit the pinning when they start.
std::vector<int> pin_to_cpus(int threads);

/// The machine's cards as the tool of NVIDIA's driver lists them, such as "NVIDIA H100 PCIe, driver
/// 550.54.15"; none where the tool is missing or fails. For programs without CUDA.
std::vector<std::string> cards_of_driver(const std::string& tool = "nvidia-smi");

}  // namespace attnbench::measure
