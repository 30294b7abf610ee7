// What a trainer learns from: batches of sequences with labels at some positions, any of which can
// be made alone and on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/torch/torch.hpp"

namespace attnbench::tasks::learning {

/// The parts of a data set: no example of one depends on those of another.
enum class Split { train, validation, test };
const char* to_string(Split split);

/// One of something for each part.
template <class Part>
struct BySplit {
  Part train{};
  Part validation{};
  Part test{};

  const Part& of(Split split) const {
    return split == Split::train ? train : split == Split::validation ? validation : test;
  }
};

/// B sequences with N labels in all. Numbers are int64, on the CPU.
struct Batch {
  at::Tensor tokens;      ///< [B, T], or [B, T, P] where P tokens share a position
  at::Tensor positions;   ///< [N], b * T + t: where a label is expected, ascending
  at::Tensor labels;      ///< [N]
  at::Tensor distances;   ///< [N]: how far back in the sequence the answer stands; 0 = nowhere
  at::Tensor candidates;  ///< [N, M]: answers that stand somewhere in the same sequence; -1 = none
  at::Tensor places;      ///< [N]: which place a decoder is asked for; undefined without a decoder
  /// Where the B sequences stand among those of a step that several processes share out: 0 and 0
  /// where they are all.
  std::int64_t first_example = 0;
  std::int64_t examples_in_all = 0;
};

/// Examples of one length; batches never mix segments.
struct SegmentSize {
  std::string name;  ///< for people: "64x4"
  std::int64_t length = 0;
  std::int64_t examples = 0;
  double labels = 1;  ///< that an example is learned from, on average
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::vector<SegmentSize> segments(Split split) const = 0;
  /// What is learned from these examples. Numbers of examples are not bounded by the segment's:
  /// there are always others. Safe to call from several threads.
  virtual Batch batch(Split split, std::size_t segment,
                      const std::vector<std::int64_t>& examples) const = 0;
  /// What is asked of them where that is not what is learned, such as every next token. Likewise.
  virtual Batch questions(Split split, std::size_t segment,
                          const std::vector<std::int64_t>& examples) const {
    return batch(split, segment, examples);
  }
};

/// The greatest length of any segment.
std::int64_t longest(const DataSet& data);

}  // namespace attnbench::tasks::learning
