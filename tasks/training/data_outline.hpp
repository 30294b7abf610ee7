// DataOutline: the sizes of data that are not prepared, from which a training's cost follows.
#pragma once

#include <stdexcept>

#include "tasks/training/data.hpp"

namespace attnbench::tasks::training {

class DataOutline final : public DataSet {
 public:
  struct Sizes {
    BySplit<std::vector<SegmentSize>> segments;
    std::int64_t classes = 0;
    std::int64_t towers = 1;
    std::string masks_between = {};  ///< as DataSet::masks_between
  };

  explicit DataOutline(Sizes sizes) : sizes_(std::move(sizes)) {}

  std::vector<SegmentSize> segments(Split split) const override {
    return sizes_.segments.of(split);
  }
  std::int64_t classes() const override { return sizes_.classes; }
  std::int64_t towers() const override { return sizes_.towers; }
  std::string masks_between() const override { return sizes_.masks_between; }
  Batch batch(Split, std::size_t, const std::vector<std::int64_t>&) const override {
    throw std::logic_error("data that are not prepared have no examples");
  }

 private:
  Sizes sizes_;
};

}  // namespace attnbench::tasks::training
