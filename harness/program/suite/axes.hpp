// Axes: the values of settings and options, and their product.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "harness/program/suite/document.hpp"

namespace attnbench::suite {

/// A value, and the start of messages about it.
struct Term {
  Json value;
  std::string place;
  bool of_shape = false;  ///< a shape's, and not said besides
};

/// Settings that vary together: points[i][k] is the value of keys[k] at the axis' i-th point.
struct Axis {
  std::vector<std::string> keys;
  std::vector<std::vector<Term>> points;
};

class Axes {
 public:
  /// Replaces the values of `key`; at least one.
  void set(const std::string& key, const std::vector<Term>& values);
  /// Replaces the values of several keys by one axis.
  void zip(Axis axis);

  bool has(const std::string& key) const;
  /// Number of points of the product; the greatest std::size_t on overflow.
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
