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
  /// Why nothing can be measured on number `index` of it here (no driver, no such device); empty
  /// where it can.
  virtual std::string refusal(int index) const = 0;
  /// Makes that number the one that everything below is about, in this thread.
  virtual void select(int) const {}
  /// What number `index` is: {name, compute_capability, multiprocessors, memory_bytes, l2_bytes,
  /// driver, driver_cuda} as far as it is known, `memory_bytes` being its own. Empty where the
  /// machine card says all, and tensors lie in the host's memory. It need not be selected.
  virtual nlohmann::json card(int index) const;
  /// What its management library tells of number `index` at this moment (see nvml_condition);
  /// empty where there is no such library.
  virtual nlohmann::json condition(int index) const;
  virtual std::unique_ptr<Stopwatch> stopwatch() const = 0;
  /// What it can do at most, measured now; see the record's `ceilings`. GEMM rates are not in it.
  virtual nlohmann::json ceilings(int threads) const = 0;
  /// Seconds of a fixed piece of work: how fast it runs at this moment.
  virtual double calibration_seconds(int threads) const = 0;
  /// Its clock, measured now while it is busy, over the greatest that it may have; 0 where that is
  /// not known.
  virtual double clock_ratio() const { return 0; }
};

/// All kinds that this program was built with, usable or not.
const std::vector<std::unique_ptr<Device>>& all_devices();

/// `word` is a kind, or kind:index such as cuda:1. Throws EnvironmentFailure, with the reason,
/// where it is unknown or cannot be used.
const Device& usable_device(const std::string& word);
/// Its card, or null where it is unknown or cannot be used.
nlohmann::json card_if_usable(const std::string& word);
/// The number in such a word; 0 where there is none.
int device_index(const std::string& word);

}  // namespace attnbench::measure
