// Rounds beside those that were asked for: of timed cells that other programs disturbed.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "core/result/document.hpp"
#include "harness/program/run/supervise/schedule.hpp"

namespace attnbench::run {

/// A RunSettings::next_rounds for a suite that allows further rounds: asks for one more at a time
/// of the cells of which too few count, until enough do. It ends where the round before was
/// disturbed as well, after `most` rounds, or where all of them would take more than half as long
/// as those before did.
class Again {
 public:
  explicit Again(int most) : most_(most) {}
  std::optional<Further> operator()(const result::Result& result,
                                    const std::map<std::string, double>& seconds_of_rounds);

 private:
  int most_;
  int asked_ = 0;  ///< rounds of each cell, before the first of these
  double seconds_left_ = 0;
};

}  // namespace attnbench::run
