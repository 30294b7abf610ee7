// Training data: batches of sequences with labels at some positions. Any batch can be made alone
// and on any thread.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"
#include "tasks/data/split.hpp"

namespace attnbench::tasks::training {

using data::every_split;
using data::Split;

/// One value for each split.
template <class Part>
struct BySplit {
  Part train{};
  Part validation{};
  Part test{};

  const Part& of(Split split) const {
    return split == Split::train ? train : split == Split::validation ? validation : test;
  }
};

/// What weights and learning rates are selected by: the share of labels answered right, or the
/// cross-entropy, of language models.
enum class Measure { accuracy, loss };

/// B sequences with N labels in all. Numbers are int64, on the CPU.
///
/// Where every next token is a label, as in language models, distances, candidates and places are
/// undefined. Where whole examples are classified, N = B labels are those of the examples, and
/// positions, distances, candidates and places are undefined. With two towers an example is two
/// sequences: `tokens`, or `values`, and `lengths` have 2 B rows, the first sequences of all
/// examples and then the second ones.
struct Batch {
  at::Tensor tokens;     ///< [B, T], or [B, T, P] where P tokens share a position
  at::Tensor positions;  ///< [N], b * T + t of each label, ascending
  at::Tensor labels;     ///< [N]
  at::Tensor
      distances;  ///< [N]: positions from the answer to its question; 0 = not in the sequence
  at::Tensor candidates;  ///< [N, M]: answers that occur in the same sequence; -1 = none
  at::Tensor places;      ///< [N]: the place a decoder is asked for; undefined without a decoder
  /// [B]: the number of real tokens of each sequence, at least 1; padding follows them. Undefined:
  /// all tokens are real.
  at::Tensor lengths = {};
  /// [B, T] bool, where real tokens do not all come first: true at the real ones, at least one of
  /// each sequence. Undefined: `lengths` says all. The data set says why: masks_between.
  at::Tensor real = {};
  /// [B, T] float32: one number a token, for a model that reads numbers; `tokens` is undefined
  /// then.
  at::Tensor values = {};
  /// Index of the first of the B sequences within a step that several processes share, and the
  /// number of sequences of that step; 0 and 0 where the batch is the whole step.
  std::int64_t first_example = 0;
  std::int64_t examples_in_all = 0;

  /// What the model reads: tokens or values.
  const at::Tensor& input() const { return tokens.defined() ? tokens : values; }
};

/// The key mask [B, T], bool, true at the real tokens of the batch; undefined where all are real.
at::Tensor key_mask_of(const Batch& batch);

/// Examples of one length; a batch holds one segment only.
struct SegmentSize {
  std::string name;  ///< for display: "64x4"
  std::int64_t length = 0;
  std::int64_t examples = 0;
  double labels = 1;  ///< mean number of labels of a training example
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::vector<SegmentSize> segments(Split split) const = 0;
  /// A hash of all examples where they come from a file; empty where settings and seed say all.
  virtual std::string content_hash() const { return ""; }
  virtual Measure judged_by() const { return Measure::accuracy; }
  /// The mean bytes of a token of the test where the loss judges: 1 of bytes; nothing where it is
  /// not known.
  virtual std::optional<double> bytes_per_token() const { return 1; }
  /// The length at which each mix is held against its definition.
  virtual std::int64_t checked_length() const;
  /// The number of classes of whole examples; 0 where labels are tokens at positions.
  virtual std::int64_t classes() const { return 0; }
  /// The number of sequences of an example that is classified: 1 or 2.
  virtual std::int64_t towers() const { return 1; }
  /// The setting by which batches mask tokens before or between real ones (Batch::real), such as
  /// "image_mask=zero_is_pad"; empty where padding follows the real tokens.
  virtual std::string masks_between() const { return ""; }
  /// The training labels of these examples. Example numbers may exceed the segment's size. Safe to
  /// call from several threads.
  virtual Batch batch(Split split, std::size_t segment,
                      const std::vector<std::int64_t>& examples) const = 0;
  /// The labels that are scored, where those differ from the training labels (which may be every
  /// next token). Safe to call from several threads.
  virtual Batch questions(Split split, std::size_t segment,
                          const std::vector<std::int64_t>& examples) const {
    return batch(split, segment, examples);
  }
};

/// The greatest length of any segment, or of any segment of one split.
std::int64_t longest(const DataSet& data);
std::int64_t longest(const DataSet& data, Split split);

/// Writes train.jsonl, validation.jsonl and test.jsonl into `folder`, one example a line: {segment,
/// example, tokens, questions: [{position, label, distance, place?}]}. Tokens that share a position
/// are lists; `place` is for data with a decoder. Where examples are classified: {segment, example,
/// tokens or values, label}, without padding; those of two towers are a list of both sequences.
/// Questions of train.jsonl are the training labels, those of the others the scored labels. Returns
/// {files: [{file, examples}]}. Throws Error where a file cannot be written.
nlohmann::json write_jsonl(const DataSet& data, const std::filesystem::path& folder);

/// A label: the position it is expected at, and how far back its answer occurs.
struct Question {
  std::int64_t position = 0;
  std::int64_t answer = 0;
  std::int64_t distance =
      0;                    ///< positions from the answer to the question; 0 = not in the sequence
  std::int64_t place = -1;  ///< the place a decoder is asked for; -1 without a decoder
};

struct Example {
  std::vector<std::int64_t> tokens;      ///< [T], or [T * P] where P tokens share a position
  std::vector<Question> questions;       ///< by position, then place
  std::vector<std::int64_t> candidates;  ///< answers that occur in the sequence
};

/// The batch of at least one example, all of one length. The batch has places where every question
/// has one.
Batch batch_of(const std::vector<Example>& examples, std::int64_t tokens_per_position = 1);

/// Each number once, ascending.
std::vector<std::int64_t> sorted_unique(std::vector<std::int64_t> numbers);

/// A data set that makes its examples one at a time.
class ExampleDataSet : public DataSet {
 public:
  Batch batch(Split split, std::size_t segment,
              const std::vector<std::int64_t>& examples) const override;
  Batch questions(Split split, std::size_t segment,
                  const std::vector<std::int64_t>& examples) const override;

 protected:
  /// One example with the labels that are scored. Safe to call from several threads.
  virtual Example scored(Split split, std::size_t segment, std::uint64_t number) const = 0;
  /// The example with the labels that are learned. Safe to call from several threads.
  virtual Example learned(Split split, std::size_t segment, std::uint64_t number) const {
    return scored(split, segment, number);
  }
  virtual std::int64_t tokens_per_position() const { return 1; }
};

}  // namespace attnbench::tasks::training
