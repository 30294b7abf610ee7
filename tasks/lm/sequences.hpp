// Sequences of a text as batches of a training, every next token a label.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "tasks/data/lm/text.hpp"
#include "tasks/training/data.hpp"

namespace attnbench::tasks::lm {

/// Which sequences a text is cut into.
struct Cutting {
  std::int64_t length = 0;  ///< tokens T of a training sequence
  /// Lengths of the test's segments as multiples of T, ascending, the first of them 1.
  std::vector<double> segments{1};
  std::int64_t validation_bytes = 0;  ///< the first tokens of the split; 0 = all
  std::int64_t test_bytes = 0;        ///< likewise
  std::uint64_t seed = 0;             ///< of the offsets of training sequences
};

/// The multiples of the setting `segments`: "1, 1.5, 2, 4". Throws UsageError for anything but
/// ascending numbers, of which the first is 1.
std::vector<double> segments_from(const std::string& text);

/// The sequences that so many tokens of a split are cut into.
std::vector<training::SegmentSize> cut_into(const Cutting& cutting, training::Split split,
                                            std::int64_t tokens);
/// The lengths of a split's segments.
std::vector<std::int64_t> lengths(const Cutting& cutting, training::Split split);

/// A training example is T tokens from an offset that the seed and the example's number draw, its
/// labels the tokens that follow each of them. Validation and test are their whole text in order,
/// cut into sequences of the segment's length that do not see each other: every token but the first
/// is scored once in each segment. The last sequence ends with the text; of its labels those are
/// scored that no sequence before had.
class Sequences final : public training::DataSet {
 public:
  /// Throws UsageError where a split is shorter than a sequence of one of its segments.
  Sequences(std::shared_ptr<const tasks::data::Cache> cache, const Cutting& cutting);

  std::vector<training::SegmentSize> segments(training::Split split) const override;
  std::string content_hash() const override { return text_.cache().content_hash(); }
  training::Measure judged_by() const override { return training::Measure::loss; }
  std::optional<double> bytes_per_token() const override {
    return text_.bytes_per_token(training::Split::test);
  }
  std::int64_t checked_length() const override { return cutting_.length; }
  training::Batch batch(training::Split split, std::size_t segment,
                        const std::vector<std::int64_t>& examples) const override;

  const tasks::data::lm::Text& text() const { return text_; }
  const Cutting& cutting() const { return cutting_; }
  /// What a record says of the data: source, hashes, settings, and of each split its tokens and how
  /// many of them are used.
  data::Json facts() const;
  /// "bytes", or "tokens" where they are anything else.
  std::string unit() const;

 private:
  struct Place;
  Place place(training::Split split, std::int64_t length, std::int64_t example) const;
  /// Tokens of the split that are used.
  std::int64_t tokens(training::Split split) const;

  tasks::data::lm::Text text_;
  Cutting cutting_;
};

}  // namespace attnbench::tasks::lm
