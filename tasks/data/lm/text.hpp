// A prepared text: the tokens of each split by their place, and the levels that a language model of
// bytes is held against.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "tasks/data/cache.hpp"
#include "tasks/data/lm/token_files.hpp"

namespace attnbench::tasks::data::lm {

class Text {
 public:
  /// Throws UsageError "FILE: …" where the cache holds no text.
  explicit Text(std::shared_ptr<const Cache> cache);

  const Cache& cache() const { return *cache_; }
  /// What a token is: a byte, an id of a tokeniser, or a word.
  Encoding encoding() const;
  /// The mean bytes of a token of `split`; nothing where the files do not tell it.
  std::optional<double> bytes_per_token(Split split) const;
  std::int64_t tokens(Split split) const {
    return static_cast<std::int64_t>(cache_->facts(split).tokens);
  }
  /// Copies the tokens [first, first + out.size()) of `split`. Safe from several threads. Throws
  /// std::out_of_range beyond the split's end.
  void copy(Split split, std::int64_t first, std::span<std::int64_t> out) const;

 private:
  std::shared_ptr<const Cache> cache_;
};

/// The mean bits per byte where each is predicted from the `context` bytes before it.
struct Level {
  std::int64_t context = 0;
  double bits_per_byte = 0;
};

/// What counting reaches in a text of bytes: the bytes of the test, from the third on, predicted by
/// how often each byte follows the same 0, 1 or 2 bytes in the training text, of which the first
/// `max_counted` bytes are counted. Where a context was followed by n bytes, d of them different, k
/// of them this one, its probability is (k + d q) / (n + d) (Witten and Bell 1991, method C), q
/// that of the context that is one byte shorter; without any context it is (k + 1) / (n + 256).
/// Only the first `max_scored` bytes of the test are scored; 0 = all.
std::vector<Level> counted_levels(const Text& text, std::int64_t max_scored = 0,
                                  std::int64_t max_counted = std::int64_t{1} << 30);

}  // namespace attnbench::tasks::data::lm
