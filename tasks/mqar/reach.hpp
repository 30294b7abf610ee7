// Reach: the share of test questions that one look-up into a window can answer, from the test data
// and the layers alone.
#pragma once

#include "core/result/training.hpp"
#include "tasks/mqar/data.hpp"
#include "tasks/training/model_options.hpp"

namespace attnbench::tasks::mqar {

/// The distribution of distances from answer to question over a test. Segments are weighted by
/// their examples, as in the accuracy.
class LookBackShares {
 public:
  /// Makes every example of the test.
  explicit LookBackShares(const RecallPlan& plan);
  /// The share of answers at most `distance` positions before their questions.
  double share_within(std::int64_t distance) const;

 private:
  std::vector<double> shares_;  ///< by distance, from 0 to the farthest
};

/// The greatest distance of an answer that one look-up into `keys` keys finds. The value follows
/// its key, so a lower block has to bring both to one position: a mechanism to the value's own, a
/// convolution also to later positions, up to the last one whose taps include the key.
std::int64_t farthest_found(std::int64_t keys, const training::ModelOptions& model);

/// The reach for increasing numbers of keys, in small steps, until it is 1. A window of `own_keys`
/// has `window_bytes` of state in a sequence of `length` tokens, besides `other_bytes` that do not
/// depend on the window.
result::ReachLine reach_line(const LookBackShares& look_back, const training::ModelOptions& model,
                             std::int64_t length, std::int64_t own_keys, std::int64_t window_bytes,
                             std::int64_t other_bytes);

}  // namespace attnbench::tasks::mqar
