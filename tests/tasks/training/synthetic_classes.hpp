// A small data set of classes for tests: sequences of unequal length, padded on the right, in which
// one of the marker tokens occurs three times. Its number is the class. With two towers the class
// says whether both markers are the same; as numbers, whether their mean is above 0.
#pragma once

#include "core/random.hpp"
#include "tasks/training/data.hpp"

namespace attnbench::test {

class SyntheticClasses final : public tasks::training::DataSet {
 public:
  static constexpr std::int64_t vocabulary = 24;
  static constexpr std::int64_t length = 20;

  explicit SyntheticClasses(std::int64_t towers = 1, bool values = false)
      : towers_(towers), values_(values) {}

  std::vector<tasks::training::SegmentSize> segments(tasks::training::Split split) const override {
    using tasks::training::Split;
    return {{"20", length, split == Split::train ? 96 : 40, 1}};
  }
  std::int64_t classes() const override { return towers_ == 2 || values_ ? 2 : 4; }
  std::int64_t towers() const override { return towers_; }

  tasks::training::Batch batch(tasks::training::Split split, std::size_t,
                               const std::vector<std::int64_t>& examples) const override {
    const auto count = static_cast<std::int64_t>(examples.size());
    tasks::training::Batch batch;
    batch.labels = at::zeros({count}, at::kLong);
    batch.lengths = at::zeros({towers_ * count}, at::kLong);
    at::Tensor rows =
        values_ ? at::zeros({count, length}) : at::zeros({towers_ * count, length}, at::kLong);
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t first = -1;
      for (std::int64_t tower = 0; tower < towers_; ++tower) {
        Random random(
            key_of({77, static_cast<std::uint64_t>(split), static_cast<std::uint64_t>(tower)}),
            static_cast<std::uint64_t>(examples[static_cast<std::size_t>(i)]));
        const std::int64_t row = tower * count + i;
        const std::int64_t real = 6 + random.below(length - 5);
        batch.lengths[row] = real;
        const std::int64_t marker = random.below(classes());
        if (values_) {
          rows[row].narrow(0, 0, real).copy_(random_values(random, real) + (marker == 1 ? 1 : -1));
        } else {
          for (std::int64_t t = 0; t < real; ++t) rows[row][t] = 5 + random.below(vocabulary - 5);
          for (const std::int64_t t : random.distinct(0, real, 3)) rows[row][t] = 1 + marker;
        }
        batch.labels[i] = tower == 0 ? marker : static_cast<std::int64_t>(marker == first);
        first = marker;
      }
    }
    (values_ ? batch.values : batch.tokens) = rows;
    return batch;
  }

 private:
  static at::Tensor random_values(Random& random, std::int64_t count) {
    at::Tensor values = at::empty({count});
    for (std::int64_t t = 0; t < count; ++t) values[t] = random.uniform() - 0.5;
    return values;
  }

  std::int64_t towers_;
  bool values_;
};

}  // namespace attnbench::test
