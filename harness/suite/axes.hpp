// Axes: the values a cell's settings take, and the product of those that take several.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/suite/catalogue.hpp"

namespace attnbench::suite {

/// One value, and the place it was written at (the start of a message about it).
struct Term {
  Json value;
  std::string place;
};

/// Settings that vary together: points[i][k] is what keys[k] is at the axis' i-th point.
struct Axis {
  std::vector<std::string> keys;
  std::vector<std::vector<Term>> points;
};

class Axes {
 public:
  /// Gives `key` these values, at least one, in place of what it had.
  void set(const std::string& key, const std::vector<Term>& values);
  /// Adds an axis of several keys in place of what they had.
  void zip(Axis axis);

  /// Number of points of the product; the greatest std::size_t where it would overflow.
  std::size_t count() const;
  /// The `index`-th point of the product; the first axis varies slowest.
  std::map<std::string, const Term*> point(std::size_t index) const;
  /// Keys that take more than one value, in order.
  std::vector<std::string> varying() const;

 private:
  void forget(const std::string& key);
  std::vector<Axis> axes_;
};

}  // namespace attnbench::suite
