#include "harness/program/run/supervise/quiet.hpp"

#include <poll.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cmath>
#include <limits>

namespace attnbench::run {
namespace {

constexpr double quiet_look_seconds = 0.5;
/// Looks in a row that must find room: a compiler is quiet for a moment between two files.
constexpr int looks_that_count = 2;

std::string seconds_text(double seconds) { return std::to_string(std::lround(seconds)) + " s"; }

/// Whether Enter was pressed. A program in the background does not get the terminal's keys.
bool enter_pressed() {
  if (isatty(STDIN_FILENO) == 0 || tcgetpgrp(STDIN_FILENO) != getpgrp()) return false;
  pollfd keys{STDIN_FILENO, POLLIN, 0};
  if (poll(&keys, 1, 0) <= 0 || (keys.revents & POLLIN) == 0) return false;
  std::array<char, 256> line;
  return read(STDIN_FILENO, line.data(), line.size()) > 0;
}

/// The flag with which a run has room, where fewer threads would have it.
std::string offer(const measure::Neighbours& neighbours, int threads, int cpus) {
  int fewer = threads - 1;
  while (fewer >= 1 && measure::crowded(neighbours, fewer, cpus)) --fewer;
  if (fewer < 1) return "";
  return " --threads " + std::to_string(fewer) + " has room beside them.";
}

std::string consequence(bool is_crowded, int threads) {
  const std::string ours = threads == 1 ? "the one thread of this run"
                                        : "the " + std::to_string(threads) + " threads of this run";
  if (!is_crowded) {
    return " There is room for " + ours + ", but caches, memory and clock are shared.";
  }
  return " They take CPUs from " + ours +
         ": times come out too long, short ones a thousandfold, and cells that are disturbed are "
         "not ranked.";
}

}  // namespace

QuietSurroundings real_surroundings() {
  QuietSurroundings real;
  real.watch = [](double seconds) { return measure::neighbours(seconds); };
  real.now = [] {
    const auto since = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double>(since).count();
  };
  real.stopped = [] { return false; };
  real.told_to_go_on = enter_pressed;
  return real;
}

bool on_terminal() { return isatty(STDERR_FILENO) != 0; }

double longest_wait(const std::optional<double>& said, bool terminal) {
  return said.value_or(terminal ? std::numeric_limits<double>::infinity() : 0.0);
}

Quiet wait_for_quiet(const QuietSurroundings& surroundings, const measure::Neighbours& first,
                     int threads, int cpus, double longest) {
  Quiet quiet{first, 0};
  const std::string busy = measure::to_text(first, cpus);
  if (busy.empty()) return quiet;
  const bool is_crowded = measure::crowded(first, threads, cpus);
  surroundings.say(busy + consequence(is_crowded, threads) +
                   (is_crowded && surroundings.offers_threads ? offer(first, threads, cpus) : ""));
  if (!is_crowded) return quiet;
  if (longest <= 0) {
    surroundings.say("Going on at once; --wait SECONDS waits that long for quiet.");
    return quiet;
  }
  surroundings.say("Waiting for quiet" +
                   (std::isinf(longest) ? std::string() : ", at most " + seconds_text(longest)) +
                   ". Enter continues at once, as --now does; Ctrl-C ends the run.");
  const double begin = surroundings.now();
  int quiet_looks = 0;
  while (quiet_looks < looks_that_count && !surroundings.stopped()) {
    quiet.neighbours = surroundings.watch(quiet_look_seconds);
    quiet.waited_seconds = surroundings.now() - begin;
    quiet_looks = measure::crowded(quiet.neighbours, threads, cpus) ? 0 : quiet_looks + 1;
    if (quiet_looks == looks_that_count) {
      surroundings.say("Quiet after " + seconds_text(quiet.waited_seconds) + ".");
      break;
    }
    if (surroundings.told_to_go_on()) {
      surroundings.say("Going on, told to, after " + seconds_text(quiet.waited_seconds) + ".");
      break;
    }
    if (quiet.waited_seconds >= longest) {
      surroundings.say("Not quiet after " + seconds_text(quiet.waited_seconds) + ": going on. " +
                       measure::to_text(quiet.neighbours, cpus));
      break;
    }
    surroundings.show("waiting for quiet, " + seconds_text(quiet.waited_seconds) + ". " +
                      measure::to_text(quiet.neighbours, cpus));
  }
  return quiet;
}

}  // namespace attnbench::run
