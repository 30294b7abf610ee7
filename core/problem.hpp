// Problem: the sizes and kind of one attention call, without any tensor.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace attnbench {

enum class Pattern { bidirectional, causal, cross };
enum class Dtype { float32, float64, bfloat16, float16 };

/// Sizes count elements. The papers' C is width(), heads * head_dim unless queries and keys are
/// narrower or wider than a head's share of the tokens.
struct Problem {
  std::int64_t batch = 1;
  std::int64_t heads = 1;
  std::int64_t kv_heads = 1;    ///< key/value heads; a divisor of `heads`
  std::int64_t length = 1;      ///< query tokens T
  std::int64_t key_length = 1;  ///< key tokens; equals `length` unless the pattern is cross
  std::int64_t head_dim = 1;    ///< D, of queries and keys
  std::int64_t value_dim = 1;   ///< Dv
  Pattern pattern = Pattern::causal;
  Dtype dtype = Dtype::float32;
  std::string device = "cpu";
  bool gradient = false;         ///< whether a backward pass follows
  std::int64_t model_width = 0;  ///< of the tokens; 0 = heads * head_dim

  std::int64_t width() const { return model_width == 0 ? heads * head_dim : model_width; }
};

const char* to_string(Pattern pattern);
const char* to_string(Dtype dtype);
/// The value of a word. Both throw UsageError that lists the valid words.
Pattern pattern_from(const std::string& word);
Dtype dtype_from(const std::string& word);
std::int64_t bytes_of(Dtype dtype);

/// Pairs (query, key) that a causal mask, a window or no mask leaves visible, per batch and head.
std::int64_t visible_pairs(const Problem& problem);
std::int64_t visible_pairs(const Problem& problem, std::int64_t left, std::int64_t right);

}  // namespace attnbench
