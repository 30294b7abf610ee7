// Judge: collects what one property saw and makes the finding of it.
#pragma once

#include <string>
#include <vector>

#include "attention/conformance/conformance.hpp"

namespace attnbench::conformance {

class Judge {
 public:
  /// `where` names the trial: "length 37, gradient of k".
  void compare(const std::string& where, double error, double tolerance);
  /// Notes whether a property holds that needs no number; `expectation` says what should hold.
  void require(const std::string& expectation, bool holds);
  /// Notes a failure that leaves nothing to compare.
  void fail(const std::string& what);
  /// Notes that a trial was not made.
  void leave_out(const std::string& where, const std::string& reason);

  Finding finding(const std::string& property) const;

 private:
  int trials_ = 0;
  bool broken_ = false;
  double error_ = 0;
  double tolerance_ = 0;
  std::string worst_;
  std::vector<std::string> left_out_;
};

}  // namespace attnbench::conformance
