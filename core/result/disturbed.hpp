// What readers of results make of the status disturbed: which rounds and cells count for a verdict,
// and the words for those that do not.
#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <string>

namespace attnbench::result {

using Json = nlohmann::json;

/// Whether other programs had the CPU in a round, of a timing or of a crossover: it says so, or
/// most of the lengths that a search compared stopped for that. Such a round counts for nothing.
/// Results that are older than the key say nothing of it.
bool is_disturbed_round(const Json& round);

/// Whether a cell ended well and was not disturbed: what may be ranked, fitted and compared.
bool is_ok(const Json& cell);

/// Whether a cell ended well but for other programs, which had the CPU while it was timed. Its
/// times are shown and marked. Bytes, which no other program changes, are as good as an ok cell's.
bool is_disturbed(const Json& cell);

/// "6 of 10 rounds were preempted: repeat on a quiet machine".
std::string preempted_words(std::size_t disturbed, std::size_t rounds);

/// How many of `rounds` (an array) are disturbed.
std::size_t count_disturbed(const Json& rounds);

/// What a table says beneath numbers that are marked as disturbed.
extern const char* const disturbed_note;

}  // namespace attnbench::result
