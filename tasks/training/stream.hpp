// A trained model reads and writes: tokens generated one after the other, and its cross-entropy on
// a text, in bits. Both go through the model's state, so that memory does not depend on the length
// where the state has a fixed size.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "tasks/training/model.hpp"

namespace attnbench::tasks::training {

/// Tokens that a context or a text is read in: enough for efficient products, few enough for
/// memory.
inline constexpr std::int64_t kReadTogether = 1000;

/// How the next token follows from its logits.
struct Sampling {
  /// Logits are divided by it; 0 = the token with the greatest logit, the first of equal ones.
  double temperature = 0;
  std::uint64_t seed = 0;
};

/// The token at `position` of a sequence for its logits [vocabulary]; seed and position determine
/// the random numbers.
std::int64_t next_token(const at::Tensor& logits, const Sampling& sampling, std::int64_t position);

/// Reads `prompt`, at least one token, in parts of kReadTogether; returns the logits of the token
/// after it, [vocabulary]. The state is of one sequence.
at::Tensor read_prompt(Model& model, ModelState& state, const std::vector<std::int64_t>& prompt);

/// Generates up to `count` tokens after `prompt`; `take` gets each and returns false to end.
/// Throws what Model::step throws.
void generate(Model& model, ModelState& state, const std::vector<std::int64_t>& prompt,
              std::int64_t count, const Sampling& sampling,
              const std::function<bool(std::int64_t)>& take);

/// Sums up a model's cross-entropy on a text, in bits, part by part. The first token of the text is
/// predicted from nothing, and is not scored.
class StreamScore {
 public:
  /// `state` of one sequence, before the first token. Both must outlive this.
  StreamScore(Model& model, ModelState& state) : model_(model), state_(state) {}

  /// Scores the next tokens of the text, at least one.
  void read(const std::vector<std::int64_t>& tokens);

  std::int64_t scored() const { return scored_; }  ///< tokens
  double bits() const { return bits_; }            ///< bits of all of them
  double bits_per_token() const;                   ///< 0 before the second token

 private:
  Model& model_;
  ModelState& state_;
  at::Tensor last_;  ///< logits after the last token read, [1, vocabulary]
  std::int64_t scored_ = 0;
  double bits_ = 0;
};

}  // namespace attnbench::tasks::training
