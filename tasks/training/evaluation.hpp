// Evaluation: how a model answers the questions of a split, and what the record of a cell holds of
// a training.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>

#include "tasks/training/data.hpp"
#include "tasks/training/model.hpp"

namespace attnbench::tasks::training {

class Trainer;

/// Counts over questions. The answer is the token with the greatest logit over the whole
/// vocabulary.
struct Scores {
  std::int64_t questions = 0;
  std::int64_t right = 0;
  /// Wrong answers that occur in the same sequence, and those that do not.
  std::int64_t wrong_from_context = 0;
  std::int64_t wrong_from_elsewhere = 0;
  double loss_sum = 0;  ///< cross-entropy in nats
  struct Share {
    std::int64_t questions = 0;
    std::int64_t right = 0;
  };
  std::map<std::int64_t, Share> by_distance;  ///< from the answer to the question, if it occurs
  std::map<std::int64_t, Share> by_label;

  double accuracy() const;
  /// The mean over labels of the accuracy of each label: every label has the same weight.
  double label_accuracy() const;
  double loss() const;
  void add(const Scores& other);
};

/// Logits of the labelled positions alone, [N, vocabulary]. Tensors of `batch` are on the model's
/// device.
at::Tensor labelled_logits(Model& model, const Batch& batch, const Dropout& dropout = {});

/// The batch with its tensors on `device`.
Batch to_device(const Batch& batch, const at::Device& device);

/// Scores of the first `examples` examples of a segment (or all there are), without dropout,
/// `together` in one batch.
Scores evaluate(Model& model, const DataSet& data, Split split, std::size_t segment,
                std::int64_t examples, std::int64_t together);

/// The sections `metrics` and `training` of core/schema/result.schema.json, of a model that `trainer` has
/// trained. Scores every test segment, `together` examples in one batch; counts the state after
/// `longest` tokens.
nlohmann::json training_record(Model& model, const DataSet& data, const Trainer& trainer,
                               std::int64_t together, std::int64_t longest);

}  // namespace attnbench::tasks::training
