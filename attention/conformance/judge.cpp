#include "attention/conformance/judge.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

namespace attnbench::conformance {
namespace {

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g", value);
  return text;
}

/// How much of the tolerance an error uses up; above 1 it is broken.
double share(double error, double tolerance) {
  if (std::isnan(error)) return std::numeric_limits<double>::infinity();
  if (tolerance > 0) return error / tolerance;
  return error > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace

const char* to_string(PropertyOutcome status) {
  switch (status) {
    case PropertyOutcome::held:
      return "held";
    case PropertyOutcome::broken:
      return "broken";
    case PropertyOutcome::not_applicable:
      break;
  }
  return "not_applicable";
}

void Judge::compare(const std::string& where, double error, double tolerance) {
  const double now = share(error, tolerance);
  if (trials_++ == 0 || now > share(error_, tolerance_)) {
    worst_ = where;
    error_ = std::isnan(error) ? std::numeric_limits<double>::infinity() : error;
    tolerance_ = tolerance;
  }
  broken_ = broken_ || now > 1;
}

void Judge::require(const std::string& expectation, bool holds) {
  if (holds) return compare(expectation, 0, 0);
  compare("it does not hold that " + expectation, std::numeric_limits<double>::infinity(), 0);
}

void Judge::fail(const std::string& what) {
  compare(what, std::numeric_limits<double>::infinity(), 0);
}

void Judge::leave_out(const std::string& where, const std::string& reason) {
  const std::string line = where.empty() ? reason : "not at " + where + ": " + reason;
  if (std::find(left_out_.begin(), left_out_.end(), line) == left_out_.end()) {
    left_out_.push_back(line);
  }
}

Finding Judge::finding(const std::string& property) const {
  Finding finding{property, PropertyOutcome::not_applicable, {}, error_, tolerance_};
  if (trials_ > 0) finding.status = broken_ ? PropertyOutcome::broken : PropertyOutcome::held;
  if (broken_) {
    finding.reason = worst_ + (std::isinf(error_) && tolerance_ == 0
                                   ? ""
                                   : ": off by " + number(error_) + ", at most " +
                                         number(tolerance_) + " is allowed");
  } else {
    for (const auto& line : left_out_)
      finding.reason += (finding.reason.empty() ? "" : "; ") + line;
  }
  return finding;
}

}  // namespace attnbench::conformance
