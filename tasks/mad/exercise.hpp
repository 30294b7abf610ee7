// The six exercises of MAD, mechanistic architecture design (Poli et al. 2024). Each example is
// decided by a seed, a split and a number alone. Where mad-lab learns every next token, so does
// ours (`learned`); what is asked is the same everywhere.
//
// in_context_recall: T / 2 pairs key value, keys drawn with replacement and their values fixed in
// the sequence; asked: the value of each key that was there before. The last pair's was.
//
// noisy_recall: the same, where a pair gives way to two tokens of noise now and then.
//
// fuzzy_recall: keys and values are ordered motifs of different tokens; keys of 1 to `motif` tokens
// are learned from, keys of `motif` tokens are asked.
//
// selective_copying: symbols among blanks, then the sign to copy, then a blank for each symbol,
// where the symbols are asked in their order.
//
// compression: symbols, then a sign: from the sign's features alone a decoder has to find all.
//
// memorization: key, sign, key, sign, …; asked at the sign: the key's value, which is the same in
// all examples and stands in none.
#pragma once

#include <string>
#include <vector>

#include "tasks/training/draws.hpp"
#include "tasks/training/examples.hpp"

namespace attnbench::tasks::mad {

using learning::Draws;
using learning::Sheet;
using learning::Split;
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
std::vector<std::string> exercise_words();
/// Throws UsageError listing the valid words.
Exercise exercise_from(const std::string& word);

struct Rules {
  Exercise exercise = Exercise::in_context_recall;
  std::int64_t vocabulary = 16;
  std::int64_t length = 128;
  std::int64_t noise_tokens = 0;  ///< of noisy_recall: so many of the vocabulary are noise
  double noise = 0;               ///< of noisy_recall: share of pairs that are noise
  std::int64_t motif = 0;         ///< of fuzzy_recall: most tokens of a key or a value
  std::int64_t symbols = 0;       ///< of selective_copying
  std::int64_t train = 12800;     ///< examples to learn from
};

/// The exercise as mad-lab has it before it makes anything harder.
Rules baseline(Exercise exercise);

/// Throws UsageError saying what does not fit.
void check(const Rules& rules);

/// Different tokens that can be an answer; all are equally likely.
std::int64_t answers(const Rules& rules);

/// Labels that an example is learned from.
double labels(const Rules& rules);

/// What is asked of one example. Rules have passed `check`.
Sheet make_example(const Rules& rules, std::uint64_t seed, Split split, std::uint64_t number);

/// What is learned from it.
Sheet learned(const Rules& rules, Sheet asked);

// One file each.
Sheet in_context_recall(const Rules& rules, Draws& draws);  ///< noisy_recall too
Sheet fuzzy_recall(const Rules& rules, Split split, Draws& draws);
Sheet selective_copying(const Rules& rules, Draws& draws);
Sheet compression(const Rules& rules, Draws& draws);
Sheet memorization(const Rules& rules, std::uint64_t seed, Draws& draws);

/// Each once, ascending.
Tokens different(Tokens tokens);

}  // namespace attnbench::tasks::mad
