// The six exercises of MAD, mechanistic architecture design (Poli et al. 2024). A seed, a split and
// a number determine each example. Exercises that mad-lab trains on every next token are trained so
// here (`learned`), too.
//
// in_context_recall: T / 2 pairs key value, keys drawn with replacement, each key's value fixed in
// the sequence; scored: the value of each key that occurred before, as the last pair's did.
//
// noisy_recall: the same, with some pairs replaced by two tokens of noise.
//
// fuzzy_recall: keys and values are ordered motifs of different tokens; training has keys of 1 to
// `motif` tokens, the other splits keys of `motif` tokens.
//
// selective_copying: symbols among blanks, then the sign to copy, then a blank for each symbol; the
// symbols are asked in their order.
//
// compression: symbols, then a sign: a decoder has to find all symbols from the sign's features.
//
// memorization: key, sign, key, sign, …; asked at the sign: the key's value, which is the same in
// all examples and occurs in none.
#pragma once

#include <string>
#include <vector>

#include "core/random.hpp"
#include "tasks/training/data.hpp"

namespace attnbench::tasks::mad {

using training::Example;
using training::Split;
using Tokens = std::vector<std::int64_t>;

enum class Exercise {
  in_context_recall,
  noisy_recall,
  fuzzy_recall,
  selective_copying,
  compression,
  memorization
};

const char* to_string(Exercise exercise);
std::vector<std::string> exercise_names();
/// Throws UsageError that lists the names.
Exercise exercise_from(const std::string& name);

struct Rules {
  Exercise exercise = Exercise::in_context_recall;
  std::int64_t vocabulary = 16;
  std::int64_t length = 128;
  std::int64_t noise_tokens = 0;  ///< of noisy_recall: tokens of the vocabulary that are noise
  double noise = 0;               ///< of noisy_recall: share of pairs that are noise
  std::int64_t motif = 0;         ///< of fuzzy_recall: most tokens of a key or a value
  std::int64_t symbols = 0;       ///< of selective_copying
  std::int64_t train = 12800;     ///< training examples
};

/// mad-lab's baseline of the exercise, before it varies the difficulty.
Rules baseline(Exercise exercise);

/// Throws UsageError that names the rule broken.
void check(const Rules& rules);

/// The number of different answers; all are equally likely.
std::int64_t answers(const Rules& rules);

/// The number of training labels of an example.
double labels(const Rules& rules);

/// One example with the labels that are scored. Rules must have passed `check`.
Example make_example(const Rules& rules, std::uint64_t seed, Split split, std::uint64_t number);

/// The example with the labels that are learned.
Example with_learned_labels(const Rules& rules, Example example);

// The generators, in generators.cpp.
Example in_context_recall(const Rules& rules, Random& random);  ///< noisy_recall too
Example fuzzy_recall(const Rules& rules, Split split, Random& random);
Example selective_copying(const Rules& rules, Random& random);
Example compression(const Rules& rules, Random& random);
Example memorization(const Rules& rules, std::uint64_t seed, Random& random);

}  // namespace attnbench::tasks::mad
