// Quiet: reports which other programs are busy before a run that times something, and waits until
// they are not.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/measure/neighbours.hpp"

namespace attnbench::run {

/// What wait_for_quiet sees and does; tests replace it.
struct QuietSurroundings {
  std::function<measure::Neighbours(double seconds)> watch;  ///< others, for that long
  std::function<double()> now;                               ///< seconds
  std::function<bool()> stopped;                             ///< by Ctrl-C
  std::function<bool()> told_to_go_on;                       ///< by the Enter key
  std::function<void(const std::string& sentence)> say;
  std::function<void(const std::string& line)> show;  ///< instead of the line shown before
  bool offers_threads = true;                         ///< the command has --threads
};

/// The surroundings of this process: /proc, the steady clock and, where the program has the
/// terminal, its keys. `stopped`, `say` and `show` are the caller's.
QuietSurroundings real_surroundings();

/// Whether standard error is a terminal.
bool on_terminal();

/// Seconds to wait at most: what the user set, else as long as it takes on a terminal and 0
/// elsewhere.
double longest_wait(const std::optional<double>& said, bool terminal);

struct Quiet {
  measure::Neighbours neighbours;  ///< seen last
  double waited_seconds = 0;
};

/// Reports which programs of `first` are busy, and what that does to times of `threads` threads on
/// `cpus` CPUs. Then waits until there is room for the threads, at most `longest` seconds (0 = not
/// at all), until Ctrl-C or Enter, and reports how that ended. Does not wait where there is room.
Quiet wait_for_quiet(const QuietSurroundings& surroundings, const measure::Neighbours& first,
                     int threads, int cpus, double longest);

}  // namespace attnbench::run
