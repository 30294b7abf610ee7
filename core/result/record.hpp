// Statuses, and which cells and rounds count for a verdict. What a record holds is said by
// core/schema/result.schema.json.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace attnbench::result {

using Json = nlohmann::json;

/// What became of a cell. None vanishes silently. A disturbed cell keeps its timing, but other
/// processes took the CPU from most of its rounds: it is never ranked and enters no verdict.
/// Trainings are not disturbed: what they learn is the same bit for bit.
enum class Status {
  ok,
  wrong,
  disturbed,
  unsupported,
  skipped,
  out_of_memory,
  timeout,
  crashed,
  error
};

const char* to_string(Status status);
std::optional<Status> status_from(const std::string& word);
/// All words, in the order above.
const std::vector<std::string>& status_words();

/// Whether a cell ended well and was not disturbed: what may be ranked, fitted and compared.
bool is_ok(const Json& cell);

/// Whether a cell ended well but was disturbed. Its times are shown and marked. Its bytes, which
/// other processes do not change, are as good as an ok cell's.
bool is_disturbed(const Json& cell);

/// Whether a round, of a timing or of a crossover, is disturbed and does not count: it says so, or
/// most of the lengths that a search compared stopped as disturbed. False for results that are
/// older than the key.
bool is_disturbed_round(const Json& round);

/// How many of `rounds` (an array) are disturbed.
std::size_t count_disturbed(const Json& rounds);

/// "6 of 10 rounds were preempted: repeat on a quiet machine".
std::string preempted_words(std::size_t disturbed, std::size_t rounds);

/// The note beneath a table with numbers that are marked as disturbed.
extern const char* const disturbed_note;

}  // namespace attnbench::result
