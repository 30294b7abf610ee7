// What NVIDIA's management library (NVML) knows of a card while it is measured: clocks, power, who
// else is on it. It comes with the driver and is looked for when it is asked for; nothing of it is
// needed to build.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::measure {

/// Of the card at this PCI address ("0000:1a:00.0"), now:
/// {driver, memory_used_bytes, clock_hz, clock_greatest_hz, clock_memory_hz, temperature_celsius,
///  power_watts, power_limit_watts, power_limit_usual_watts, persistence: bool, ecc: bool,
///  ecc_pending: bool, mig: bool, slowed_by: [word…], processes: [{pid, memory_bytes?}],
///  busy_share}
/// What the card does not tell is left out; this process is none of `processes`. {refusal} where
/// the library is not there or does not know the card.
nlohmann::json nvml_condition(const std::string& pci_address);

}  // namespace attnbench::measure
