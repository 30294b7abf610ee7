#include "tasks/mad/exercise.hpp"

#include <limits>

#include "tasks/settings.hpp"

namespace attnbench::tasks::mad {
namespace {

constexpr Names<Exercise, 6> exercises = {{"in_context_recall", Exercise::in_context_recall},
                                          {"noisy_recall", Exercise::noisy_recall},
                                          {"fuzzy_recall", Exercise::fuzzy_recall},
                                          {"selective_copying", Exercise::selective_copying},
                                          {"compression", Exercise::compression},
                                          {"memorization", Exercise::memorization}};

/// Whether training has every next token as a label.
bool predicts_all(Exercise exercise) {
  return exercise == Exercise::in_context_recall || exercise == Exercise::noisy_recall ||
         exercise == Exercise::fuzzy_recall;
}

}  // namespace

const char* to_string(Exercise exercise) { return name_of(exercises, exercise); }
std::vector<std::string> exercise_names() { return all_names(exercises); }
Exercise exercise_from(const std::string& name) { return value_named("exercise", exercises, name); }

Rules baseline(Exercise exercise) {
  Rules rules;
  rules.exercise = exercise;
  switch (exercise) {
    case Exercise::in_context_recall:
      break;
    case Exercise::noisy_recall:
      rules.vocabulary = 32;
      rules.noise_tokens = 16;
      rules.noise = 0.2;
      break;
    case Exercise::fuzzy_recall:
      rules.motif = 3;
      break;
    case Exercise::selective_copying:
      rules.length = 256;
      rules.symbols = 16;
      break;
    case Exercise::compression:
      rules.length = 32;
      break;
    case Exercise::memorization:
      rules.vocabulary = 256;
      rules.length = 32;
      rules.train = 256;
      break;
  }
  return rules;
}

void check(const Rules& rules) {
  const auto need = [&](bool holds, const std::string& rule) {
    if (holds) return;
    throw UsageError(std::string(to_string(rules.exercise)) + " of length " +
                     std::to_string(rules.length) + " with " + std::to_string(rules.vocabulary) +
                     " tokens: " + rule);
  };
  need(rules.vocabulary <= std::numeric_limits<std::int32_t>::max(),
       "the vocabulary must be below 2^31");
  switch (rules.exercise) {
    case Exercise::in_context_recall:
    case Exercise::noisy_recall:
      need(rules.length >= 4 && rules.length % 2 == 0, "the length must be even and at least 4");
      need(rules.vocabulary - rules.noise_tokens >= 4,
           "at least two keys and two values are needed besides the noise");
      need(rules.noise == 0 || rules.noise_tokens > 0, "noise needs noise_tokens");
      need(rules.noise >= 0 && rules.noise < 1, "the share of noise must be below 1");
      return;
    case Exercise::fuzzy_recall:
      need(rules.motif >= 1, "a motif needs a token");
      need((rules.vocabulary - 1) / 2 >= rules.motif,
           "a motif's tokens are different: fewer keys than the motif's tokens");
      need(rules.length >= 8 * rules.motif, "the length must be at least eight motifs");
      return;
    case Exercise::selective_copying:
      need(rules.symbols >= 1, "at least one symbol is to be copied");
      need(rules.length > 2 * rules.symbols, "each symbol takes two tokens, and the sign one");
      need(rules.vocabulary >= 4, "at least two symbols, the blank and the sign are needed");
      return;
    case Exercise::compression:
      need(rules.length >= 2, "at least a symbol and the sign are needed");
      need(rules.vocabulary >= 3, "at least two symbols and the sign are needed");
      return;
    case Exercise::memorization:
      need(rules.length >= 2 && rules.length % 2 == 0, "the length must be even");
      need(rules.vocabulary >= 5, "at least two keys, two values and the sign are needed");
      return;
  }
}

std::int64_t answers(const Rules& rules) {
  switch (rules.exercise) {
    case Exercise::in_context_recall:
    case Exercise::noisy_recall: {
      const std::int64_t clear = rules.vocabulary - rules.noise_tokens;
      return clear - clear / 2;
    }
    case Exercise::fuzzy_recall:
    case Exercise::memorization:
      return rules.vocabulary - 1 - (rules.vocabulary - 1) / 2;
    case Exercise::selective_copying:
      return rules.vocabulary - 2;
    case Exercise::compression:
      return rules.vocabulary - 1;
  }
  return 1;
}

double labels(const Rules& rules) {
  const auto length = static_cast<double>(rules.length);
  if (rules.exercise == Exercise::selective_copying) return static_cast<double>(rules.symbols);
  return rules.exercise == Exercise::memorization ? length / 2 : length - 1;
}

Example make_example(const Rules& rules, std::uint64_t seed, Split split, std::uint64_t number) {
  Random random(
      key_of({seed, static_cast<std::uint64_t>(split), static_cast<std::uint64_t>(rules.exercise)}),
      number);
  switch (rules.exercise) {
    case Exercise::in_context_recall:
    case Exercise::noisy_recall:
      return in_context_recall(rules, random);
    case Exercise::fuzzy_recall:
      return fuzzy_recall(rules, split, random);
    case Exercise::selective_copying:
      return selective_copying(rules, random);
    case Exercise::compression:
      return compression(rules, random);
    case Exercise::memorization:
      return memorization(rules, seed, random);
  }
  return {};
}

Example with_learned_labels(const Rules& rules, Example example) {
  if (!predicts_all(rules.exercise)) return example;
  std::vector<training::Question> all;
  auto scored = example.questions.begin();
  for (std::size_t i = 0; i + 1 < example.tokens.size(); ++i) {
    const auto position = static_cast<std::int64_t>(i);
    const bool is_scored = scored != example.questions.end() && scored->position == position;
    all.push_back(is_scored ? *scored++ : training::Question{position, example.tokens[i + 1], 0});
  }
  example.questions = std::move(all);
  return example;
}

}  // namespace attnbench::tasks::mad
