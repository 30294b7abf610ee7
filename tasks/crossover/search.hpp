// The search for the length at which a mechanism overtakes the exact one: no clock, no tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::tasks::crossover {

/// Who is faster at a length. `untried`: one of the two does not support it.
enum class Faster { exact, mechanism, undecided, untried };
const char* to_string(Faster faster);

struct Trial {
  std::int64_t length = 0;
  Faster faster = Faster::untried;
  double ratio = 1;  ///< the mechanism's time over the exact one's; of no meaning where untried
};

/// Compares at one length; nothing where the search has to end (no time, no memory).
using Compare = std::function<std::optional<Trial>(std::int64_t length)>;

struct Range {
  std::int64_t minimum = 1;
  std::int64_t maximum = 1;
  double resolution = 0.05;  ///< an interval [low, high] is narrow enough at high <= (1 + this) low
};

/// A change of who is faster: of one decided at `low` to the other decided at `high`, the longest
/// and the shortest such lengths. What was undecided lies between.
struct Crossing {
  std::int64_t low = 0;
  std::int64_t high = 0;
  Faster from = Faster::exact;  ///< who is faster at `low`; the other one is at `high`
};

/// found      slower up to low, faster from high on
/// below      faster at every length that is decided, from high (the shortest) on
/// above      slower up to low (the longest decided), but catching up
/// none       slower at every length that is decided, and not catching up
/// reverse    faster up to low, slower from high on
/// several    the sign changes more than once: see crossings
/// undecided  no length is decided
struct Found {
  std::string verdict;
  std::optional<std::int64_t> low;
  std::optional<std::int64_t> high;
  std::vector<Crossing> crossings;
  std::vector<Trial> trials;  ///< by length
};

/// Every power-of-two multiple of `minimum` up to `maximum`, and `maximum`.
std::vector<std::int64_t> coarse_lengths(std::int64_t minimum, std::int64_t maximum);

/// Tries the coarse lengths in ascending order, all of them, since more than one change must not go
/// unseen; then halves, in logarithms, what lies between decided lengths of different sign.
Found search(const Range& range, const Compare& compare);

/// The verdict over trials and refined crossings; `trials` in order of length.
Found judged(std::vector<Trial> trials, std::vector<Crossing> crossings);

}  // namespace attnbench::tasks::crossover
