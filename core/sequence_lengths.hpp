// The lengths of a ragged batch's sequences as one text, which suites and the command line can say
// as a single value: "100+2000+512", or "8x512+4096" for eight of 512 tokens and one of 4096.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnbench {

/// Tokens of each sequence, in their order; none for an empty text. Throws UsageError, with the
/// form that was expected, for other text, for a length outside 1 to longest_length
/// (core/sizes.hpp) and for more than max_size sequences.
std::vector<std::int64_t> sequence_lengths(const std::string& text);

/// The shortest text of these lengths, by which equal batches are told: counts of two or more for
/// equal neighbours.
std::string sequence_lengths_text(const std::vector<std::int64_t>& lengths);

}  // namespace attnbench
