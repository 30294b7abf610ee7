// What a trainer learns from: batches of sequences with labels at some positions, any of which can
// be made alone and on any thread.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "attention/torch.hpp"

namespace attnbench::tasks::learning {

/// The parts of a data set: no example of one depends on those of another.
enum class Split { train, validation, test };
const char* to_string(Split split);

/// B sequences with N labels in all. Numbers are int64, on the CPU.
struct Batch {
  at::Tensor tokens;      ///< [B, T], or [B, T, P] where P tokens share a position
  at::Tensor positions;   ///< [N], b * T + t: where a label is expected, ascending
  at::Tensor labels;      ///< [N]
  at::Tensor distances;   ///< [N]: how far back in the sequence the answer stands
  at::Tensor candidates;  ///< [N, M]: answers that stand somewhere in the same sequence
};

/// Examples of one length; batches never mix segments.
struct SegmentSize {
  std::string name;  ///< for people: "64x4"
  std::int64_t length = 0;
  std::int64_t examples = 0;
};

class DataSet {
 public:
  virtual ~DataSet() = default;
  virtual std::vector<SegmentSize> segments(Split split) const = 0;
  /// Safe to call from several threads.
  virtual Batch batch(Split split, std::size_t segment,
                      const std::vector<std::int64_t>& examples) const = 0;
};

}  // namespace attnbench::tasks::learning
