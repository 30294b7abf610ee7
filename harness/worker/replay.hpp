// Replay: a body recorded as a graph, so that its time is the device's and not that of launching.
#pragma once

#include <functional>
#include <string>

namespace attnbench::worker {

/// Runs `body` a few times on `device`, `before` (may be empty) ahead of each, records it and plays
/// it once. Returns what queues the recorded work behind that of the default stream; nothing where
/// it cannot be recorded (it waits for the device, or copies from the host), with the reason in
/// `why`. The memory that the body took is the graph's while that lives: nothing else may be
/// allocated on a side stream meanwhile.
std::function<void()> recorded(const std::string& device, const std::function<void()>& body,
                               const std::function<void()>& before, std::string& why);

}  // namespace attnbench::worker
