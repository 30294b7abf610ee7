// Reach: which questions one look-up into a window can answer, from the test and the layers alone.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "tasks/training/model_options.hpp"
#include "tasks/mqar/data.hpp"

namespace attnbench::tasks::mqar {

/// How far back answers stand, over the questions of a test. Its segments count by their examples,
/// as in the accuracy.
class LookBack {
 public:
  /// Makes every example of the test.
  explicit LookBack(const Plan& plan);
  /// The share of answers that stand at most `distance` positions before their questions.
  double share_within(std::int64_t distance) const;

 private:
  std::vector<double> shares_;  ///< by distance, from 0 to the farthest
};

/// The farthest answer that one look-up into `keys` keys finds. What is looked up is a key's
/// successor, so something has to put the two at one position first: a convolution below puts them
/// at the positions after the value's, too, up to the last that still sees the key; a mechanism in
/// the block below may put them at the value's own.
std::int64_t farthest_found(std::int64_t keys, const learning::ModelOptions& model);

/// For numbers of keys from 1 on, in small steps, until all is reached: {keys: […], state_bytes:
/// […], reach: […]}. `own_keys` of them take `window_bytes` of state in a sequence of `length`
/// tokens, beside `other_bytes` that do not depend on them.
nlohmann::json reach_line(const LookBack& look_back, const learning::ModelOptions& model,
                          std::int64_t length, std::int64_t own_keys, std::int64_t window_bytes,
                          std::int64_t other_bytes);

}  // namespace attnbench::tasks::mqar
