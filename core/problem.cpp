#include "core/problem.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "core/errors.hpp"
#include "core/option.hpp"

namespace attnbench {
namespace {

template <class T, std::size_t N>
T from_word(const char* what, const std::string& word,
            const std::pair<const char*, T> (&table)[N]) {
  std::vector<std::string> known;
  for (const auto& [text, value] : table) {
    if (word == text) return value;
    known.push_back(text);
  }
  throw UsageError(std::string(what) + " must be one of " + word_list(known) + ", not \"" + word +
                   "\"" + did_you_mean(word, known));
}

template <class T, std::size_t N>
const char* to_word(T value, const std::pair<const char*, T> (&table)[N]) {
  for (const auto& [text, known] : table) {
    if (known == value) return text;
  }
  throw std::logic_error("value out of range");
}

constexpr std::pair<const char*, Pattern> patterns[] = {{"bidirectional", Pattern::bidirectional},
                                                        {"causal", Pattern::causal},
                                                        {"cross", Pattern::cross}};
constexpr std::pair<const char*, Dtype> dtypes[] = {{"float32", Dtype::float32},
                                                    {"float64", Dtype::float64},
                                                    {"bfloat16", Dtype::bfloat16},
                                                    {"float16", Dtype::float16}};

}  // namespace

const char* to_string(Pattern pattern) { return to_word(pattern, patterns); }
const char* to_string(Dtype dtype) { return to_word(dtype, dtypes); }
Pattern pattern_from(const std::string& word) { return from_word("pattern", word, patterns); }
Dtype dtype_from(const std::string& word) { return from_word("dtype", word, dtypes); }

std::int64_t bytes_of(Dtype dtype) {
  if (dtype == Dtype::float64) return 8;
  return dtype == Dtype::float32 ? 4 : 2;
}

std::int64_t visible_pairs(const Problem& problem) {
  return visible_pairs(
      problem, problem.key_length + problem.length,
      problem.pattern == Pattern::causal ? 0 : problem.key_length + problem.length);
}

std::int64_t visible_pairs(const Problem& problem, std::int64_t left, std::int64_t right) {
  // The diagonal is aligned to the bottom right: the last query is at the last key.
  const std::int64_t shift = problem.key_length - problem.length;
  if (problem.pattern == Pattern::causal) right = std::min<std::int64_t>(right, 0);
  std::int64_t pairs = 0;
  for (std::int64_t t = 0; t < problem.length; ++t) {
    const std::int64_t first = std::max<std::int64_t>(0, t + shift - left);
    const std::int64_t last = std::min(problem.key_length - 1, t + shift + right);
    pairs += std::max<std::int64_t>(0, last - first + 1);
  }
  return pairs;
}

}  // namespace attnbench
