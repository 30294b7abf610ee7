// One timing of the base, of the new side and of the base once more, over the rounds in which they
// took turns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/result/record.hpp"
#include "harness/program/compare/compare.hpp"

namespace attnbench::compare {

/// Rounds by number; `end` does not belong to it.
struct RoundRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  bool holds(std::int64_t round) const { return begin <= round && round < end; }
};

struct PairedRounds {
  std::vector<double> base;     ///< seconds of the rounds that count
  std::vector<double> changed;  ///< as many
  std::vector<double> logs;     ///< ln(changed / base), as many
  std::vector<double> control;  ///< ln(control / base), of the rounds that the control has, too
  std::size_t left_out = 0;     ///< rounds of both sides in which one of the three was disturbed
};

/// The same of all rounds, disturbed or not, by the least sample of each side: it suffers the least
/// from what runs beside it.
struct LeastOfRounds {
  std::vector<double> base, changed;
  std::vector<double> logs, control;
};

/// The rounds in `range` that both sides have. Each timing may be null: then it has none. A round
/// that was disturbed and measured again counts.
PairedRounds paired_rounds_of(const result::Timing* base, const result::Timing* changed,
                              const result::Timing* control, const RoundRange& range);

LeastOfRounds least_of_rounds(const result::Timing* base, const result::Timing* changed,
                              const result::Timing* control, const RoundRange& range);

/// Whether the timing has a round in `range`, disturbed or not.
bool has_round_in(const result::Timing* timing, const RoundRange& range);

/// The ratio whose logarithms these are, with its interval; nothing where they are too few for one.
std::optional<Control> ratio_of(const std::vector<double>& logs, double confidence);

}  // namespace attnbench::compare
