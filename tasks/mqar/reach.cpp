#include "tasks/mqar/reach.hpp"

#include <algorithm>

namespace attnbench::tasks::mqar {

LookBackShares::LookBackShares(const RecallPlan& plan) {
  double examples = 0;
  for (const RecallSegment& shape : plan.test) examples += static_cast<double>(shape.examples);
  for (std::size_t i = 0; i < plan.test.size(); ++i) {
    const RecallSegment& shape = plan.test[i];
    const double weight = 1 / (examples * static_cast<double>(shape.pairs));
    shares_.resize(std::max(shares_.size(), static_cast<std::size_t>(shape.length)));
    for (std::int64_t j = 0; j < shape.examples; ++j) {
      const Example example = make_example(plan.recall, shape, plan.seed, Split::test, i,
                                           static_cast<std::uint64_t>(j));
      for (const Question& question : example.questions) {
        shares_[static_cast<std::size_t>(question.distance)] += weight;
      }
    }
  }
  while (shares_.size() > 1 && shares_.back() == 0) shares_.pop_back();
  for (std::size_t i = 1; i < shares_.size(); ++i) shares_[i] += shares_[i - 1];
}

double LookBackShares::share_within(std::int64_t distance) const {
  if (distance < 0) return 0;
  // The sum of all shares is 1, but for rounding.
  if (distance + 1 >= static_cast<std::int64_t>(shares_.size())) return 1;
  return shares_[static_cast<std::size_t>(distance)];
}

std::int64_t farthest_found(std::int64_t keys, const training::ModelOptions& model) {
  const bool shifted = model.layout == training::Layout::convolution_first;
  return keys - 1 + (shifted ? std::max<std::int64_t>(0, model.taps - 2) : 0);
}

result::ReachLine reach_line(const LookBackShares& look_back, const training::ModelOptions& model,
                             std::int64_t length, std::int64_t own_keys, std::int64_t window_bytes,
                             std::int64_t other_bytes) {
  result::ReachLine line;
  const std::int64_t each = window_bytes / std::min(own_keys, length);
  double reach = 0;
  for (std::int64_t keys = 1; reach < 1 && keys <= length;) {
    reach = look_back.share_within(farthest_found(keys, model));
    line.keys.push_back(keys);
    line.state_bytes.push_back(other_bytes + keys * each);
    line.reach.push_back(reach);
    if (keys == length) break;
    keys = std::min(length, std::max(keys + 1, keys + keys / 50));
  }
  return line;
}

}  // namespace attnbench::tasks::mqar
