// Noise: what disturbs measurements on this machine now, and how much timings vary.
#pragma once

#include <string>
#include <vector>

#include "core/result/machine.hpp"

namespace attnbench::measure {

/// The facts of a machine card that disturb measurements: other processes, OPENBLAS_CORETYPE, a
/// governor that saves power, …; a sentence each, with what to do.
std::vector<std::string> noise_sources(const result::MachineCard& card);

/// The facts of the device `word`, such as cuda:1, that disturb measurements, from
/// Device::condition. Unknown properties are left out.
std::vector<std::string> card_noise_sources(const std::string& word,
                                            const nlohmann::json& condition);

/// A fixed piece of work timed repeatedly, as two alternating halves A and B.
struct Noise {
  double median_seconds = 0;
  double spread = 0;      ///< (90th percentile - 10th) / median of all
  double difference = 0;  ///< |median of A / median of B - 1|
};

/// Takes about half a second on `threads` threads.
Noise noise_self_test(int threads);

}  // namespace attnbench::measure
