// Recording: whether a body is timed as it is, or recorded once and played. Launching a short body
// takes a device's host as long as the device takes to do it.
#pragma once

#include <functional>
#include <string>

#include "harness/measure/pairs.hpp"

namespace attnbench::measure {

/// A body that takes no longer is recorded, where nothing has to come before it.
constexpr double recorded_below_seconds = 1e-4;

/// Returns what plays `body.call`; nothing where it cannot be recorded, with the reason in `why`.
using Recorder = std::function<std::function<void()>(const PairedBody& body, std::string& why)>;

struct Recording {
  std::function<void()> play;  ///< instead of the body's call; empty where there is no recording
  std::string why;             ///< there is none, where one was wanted
  bool wanted() const { return play || !why.empty(); }
};

/// Wanted for a body that is said to be recordable, however long it takes, and for a short one.
/// A short one with something before it is not recorded, which the reason then says: a recording
/// does not follow what is made anew elsewhere. Calls the body three times where length decides.
Recording record_if_short(Stopwatch& stopwatch, const PairedBody& body, bool recordable,
                          const Recorder& recorder);

}  // namespace attnbench::measure
