#include "tasks/training/data.hpp"

#include <algorithm>

namespace attnbench::tasks::learning {

const char* to_string(Split split) {
  switch (split) {
    case Split::train:
      return "train";
    case Split::validation:
      return "validation";
    case Split::test:
      return "test";
  }
  return "";
}

std::int64_t longest(const DataSet& data) {
  std::int64_t length = 0;
  for (const Split split : {Split::train, Split::validation, Split::test}) {
    for (const SegmentSize& segment : data.segments(split)) {
      length = std::max(length, segment.length);
    }
  }
  return length;
}

}  // namespace attnbench::tasks::learning
