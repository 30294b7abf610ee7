// Quiet: who is busy beside a run that times something, said before the first cell, and waiting
// until they are not.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "harness/measure/neighbours.hpp"

namespace attnbench::run {

/// What waiting has to do with; tests put their own in.
struct QuietSurroundings {
  std::function<measure::Neighbours(double seconds)> watch;  ///< for as long
  std::function<double()> now;                               ///< seconds
  std::function<bool()> stopped;                             ///< by Ctrl-C
  std::function<bool()> told_to_go_on;                       ///< by the Enter key
  std::function<void(const std::string& sentence)> say;
  std::function<void(const std::string& line)> show;  ///< instead of the line shown before
};

/// /proc, the steady clock and, where the program has the terminal, its keys. `stopped`, `say` and
/// `show` are the caller's.
QuietSurroundings real_surroundings();

/// Whether somebody sits before it: standard error is a terminal.
bool on_terminal();

/// Seconds to wait at most: what was said, else for as long as it takes on a terminal and not at
/// all elsewhere.
double longest_wait(const std::optional<double>& said, bool terminal);

struct Quiet {
  measure::Neighbours neighbours;  ///< seen last
  double waited_seconds = 0;
};

/// Says who is busy, as `first` has it, and what that does to times of `threads` threads on `cpus`
/// CPUs; then waits until there is room for them, for at most `longest` seconds (0 = does not
/// wait), Ctrl-C or Enter, and says how that ended. A machine with room is waited for by nobody.
Quiet wait_for_quiet(const QuietSurroundings& surroundings, const measure::Neighbours& first,
                     int threads, int cpus, double longest);

}  // namespace attnbench::run
