// Scores: how a model answers the questions of a split.
#pragma once

#include <cstdint>
#include <map>

#include "tasks/training/data.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::learning {

/// Counts over questions. The answer is the token with the greatest logit over the whole
/// vocabulary.
struct Scores {
  std::int64_t questions = 0;
  std::int64_t right = 0;
  /// Wrong answers that stand somewhere in the same sequence, and those that do not.
  std::int64_t wrong_from_context = 0;
  std::int64_t wrong_from_elsewhere = 0;
  double loss_sum = 0;  ///< cross-entropy in nats
  struct Share {
    std::int64_t questions = 0;
    std::int64_t right = 0;
  };
  std::map<std::int64_t, Share> by_distance;  ///< how far back the right answer stands, if it does
  std::map<std::int64_t, Share> by_label;

  double accuracy() const;
  /// The mean over labels of the accuracy where that label is right: each counts alike, however
  /// often it is asked.
  double label_accuracy() const;
  double loss() const;
  void add(const Scores& other);
};

/// Logits of the labelled positions alone, [N, vocabulary]. Tensors of `batch` lie where the model
/// does.
at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout = {});

/// The batch with its tensors on `device`.
Batch moved(const Batch& batch, const at::Device& device);

/// Of the first `examples` examples of a segment (or all there are), without dropout, `together` at
/// once.
Scores evaluate(Model& model, const DataSet& data, Split split, std::size_t segment,
                std::int64_t examples, std::int64_t together);

}  // namespace attnbench::tasks::learning
