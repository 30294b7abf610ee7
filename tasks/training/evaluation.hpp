// Evaluation: how a model answers the questions of a split.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "tasks/training/data.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::training {

/// Counts over questions. The answer is the token, or the class, with the greatest logit of all.
struct Scores {
  std::int64_t questions = 0;
  std::int64_t right = 0;
  /// Wrong answers that occur in the same sequence, and those that do not; 0 where no answer stands
  /// in a sequence (`from_context` false).
  std::int64_t wrong_from_context = 0;
  std::int64_t wrong_from_elsewhere = 0;
  bool from_context = false;
  double loss_sum = 0;  ///< cross-entropy in nats
  struct Share {
    std::int64_t questions = 0;
    std::int64_t right = 0;
  };
  std::map<std::int64_t, Share> by_distance;  ///< from the answer to the question, if it occurs
  std::map<std::int64_t, Share> by_label;
  /// [C * C] of classes: examples of class i that were taken for class j at i * C + j. Empty where
  /// labels are tokens.
  std::vector<std::int64_t> confusion;

  double accuracy() const;
  /// The mean over labels of the accuracy of each label: every label has the same weight.
  double label_accuracy() const;
  double loss() const;
  void add(const Scores& other);
};

/// Scores of the segments of a split, and their means over examples whatever the number of their
/// questions.
struct SplitScores {
  std::vector<SegmentSize> segments;
  std::vector<Scores> scores;  ///< one a segment

  double accuracy() const;
  double loss() const;
  Scores sum() const;
};

/// Logits of the labelled positions alone, [N, vocabulary], or those of the examples, [N, classes],
/// with the batch's padding hidden. Tensors of `batch` are on the model's device.
at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout = {});

/// The batch with its tensors on `device`.
Batch to_device(const Batch& batch, const at::Device& device);

/// Scores of the first `examples` examples of a segment (or all there are), without dropout,
/// `together` in one batch.
Scores evaluate(Model& model, const DataSet& data, Split split, std::size_t segment,
                std::int64_t examples, std::int64_t together);

/// The scores of every segment. Of segments longer than those of training fewer examples are
/// together, so that a batch has as many tokens.
SplitScores evaluate_all(Model& model, const DataSet& data, Split split, std::int64_t together,
                         std::int64_t examples = std::numeric_limits<std::int64_t>::max());

}  // namespace attnbench::tasks::training
