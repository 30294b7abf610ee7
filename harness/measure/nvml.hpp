// NVML, NVIDIA's management library, opened at run time: no header of it is needed to build.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::measure {

/// The present condition of the card at a PCI address ("0000:1a:00.0"):
/// {driver, memory_used_bytes, clock_hz, clock_greatest_hz, clock_memory_hz, temperature_celsius,
///  power_watts, power_limit_watts, power_limit_usual_watts, persistence: bool, ecc: bool,
///  ecc_pending: bool, mig: bool, slowed_by: [word…], processes: [{pid, memory_bytes?}],
///  busy_share}
/// Unknown values are left out, and this process is left out of `processes`. {refusal} where the
/// library is missing or does not know the card.
nlohmann::json nvml_condition(const std::string& pci_address);

}  // namespace attnbench::measure
